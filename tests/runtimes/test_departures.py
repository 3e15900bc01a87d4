"""A tool that is removed from the catalog while it runs ends, and its route is removed."""

from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from pydantic import JsonValue

from engine.runtimes.running.departures import Departures
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import Progress, Running, ToolRequest, Unstarted
from tests.runtimes.conftest import Routes as SavedRoutes
from tests.runtimes.conftest import entry_of, silent
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import McpSource
from toolagent.core.failures import StoreUnavailableError


class Routes:
    """Records the forgotten routes."""

    def __init__(self) -> None:
        self.forgotten: list[tuple[str, str]] = []

    async def forget(self, tool_id: str, host: str) -> None:
        self.forgotten.append((tool_id, host))


async def none() -> tuple[str, ...]:
    return ()


class Servers(Unstarted):
    """Starts nothing."""

    async def start(self, tool: ToolManifest, source: McpSource, progress: Progress) -> Running:  # noqa: ARG002
        return Running("stdio:1", datetime.now(UTC))

    async def call(self, running: Running, source: McpSource, request: ToolRequest) -> JsonValue:  # noqa: ARG002
        return None


async def test_what_the_registry_has_no_more_is_stopped_and_its_route_forgotten(supervisor: Supervisor) -> None:
    started = await supervisor.start(entry_of(), silent)
    registered, routes = {"versatile"}, Routes()

    async def ids() -> set[str]:
        return registered

    departures = Departures(supervisor, routes, ids, "here", none, ())
    assert await departures.end() == ()
    registered.clear()
    assert await departures.end() == ("versatile",)
    assert started.pid is not None
    assert (psutil.pid_exists(started.pid), supervisor.route("versatile"), routes.forgotten) == (False, None, [("versatile", "here")])
    assert await departures.end() == ()


async def test_a_tool_that_only_moves_from_one_file_to_another_goes_on(supervisor: Supervisor) -> None:
    started = await supervisor.start(entry_of(), silent)
    looks = iter(((), ("versatile",)))

    async def ids() -> tuple[str, ...]:
        return next(looks)

    assert await Departures(supervisor, Routes(), ids, "here", none, ()).end() == ()
    assert supervisor.route("versatile") == started


async def test_only_a_removed_mcp_server_leaves_no_folder_also_if_the_database_is_away_meanwhile(tmp_path: Path) -> None:
    """Not one that only dropped a tool, nor one whose folder a tool from elsewhere has by the name of its process."""
    supervisor = Supervisor({"mcp": Servers()}, SavedRoutes(), "here")
    names = ("away", "far", "lent")
    sources = {name: McpSource(tool_name="act", command=("act",), process=name, server=name) for name in names}
    entries = [entry_of(source, tool_id=f"{name}_act") for name, source in sources.items()]
    for entry in (*entries, entry_of(sources["lent"].model_copy(update={"server": None}), tool_id="lender")):
        await supervisor.start(entry, silent)
    for name in names:
        (tmp_path / f"{name}.shared" / "home").mkdir(parents=True)
    looks = iter([StoreUnavailableError("It restarts."), ("far",), ("far",), ("far",)])

    async def servers() -> tuple[str, ...]:
        if isinstance(found := next(looks), Exception):
            raise found
        return found

    async def ids() -> tuple[str, ...]:
        return ("lender",)

    departures = Departures(supervisor, Routes(), ids, "here", servers, (tmp_path,))
    with pytest.raises(StoreUnavailableError):
        await departures.end()
    assert await departures.end() == ()
    assert [(tmp_path / f"{name}.shared").exists() for name in names] == [False, True, True]
