"""Destroying a tool on one host: it leaves the registry before it ends, and leaves nothing behind."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.control_tool import ControlTool
from engine.calling.host_tools import HostTools
from engine.registry.registry import ToolRegistry
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.runtime import RemoteRuntime
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import Running
from engine.store.database import Database
from engine.store.routes import RouteTable
from engine.store.sessions import SessionTable
from engine.store.tools import ToolTable
from tests.store.test_sessions import not_to_be_read, opened
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.groups import ToolGroup, VerifyProbe
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.routes import ControlAction, RunState, ToolControl, ToolRoute
from toolagent.contracts.sessions import OpenSession, SessionState, SessionView
from toolagent.contracts.sources import BuiltinSource, LocalSource, RemoteSource
from toolagent_service.calls.shared_processes import place_of_volumes


class _Witness(RemoteRuntime):
    """Notes which tools the registry had whenever one was ended."""

    def __init__(self, http: HttpExchange, registry: ToolRegistry) -> None:
        super().__init__(http, lambda _name: None)
        self._registry = registry
        self.seen: list[tuple[str, ...]] = []

    async def stop(self, running: Running) -> None:
        self.seen.append(await self._registry.list_ids())
        await super().stop(running)


_AT = datetime(2026, 3, 26, tzinfo=UTC)


@dataclass
class Host:
    registry: ToolRegistry
    routes: RouteTable
    witness: _Witness
    tools: HostTools
    folders: Path
    calls: Path
    env: ActivityEnvironment = field(default_factory=ActivityEnvironment)

    async def obey(self, action: ControlAction, tool_id: str = "t") -> ToolRoute:
        return await self.env.run(ControlTool(self.tools).control_tool, ToolControl(tool_id=tool_id, action=action, host="h1"))


@pytest_asyncio.fixture
async def host(database: Database, tmp_path: Path) -> AsyncGenerator[Host]:
    routes = RouteTable(database)
    registry = ToolRegistry(ToolTable(database), routes)
    http, folders, calls = HttpExchange(), tmp_path / "tools", tmp_path / "calls"
    witness = _Witness(http, registry)
    supervisor = Supervisor({"remote": witness}, routes, "h1")
    await registry.register(ToolManifest(tool_id="t", name="T"), (RemoteSource(remote_url="http://127.0.0.1:1"),))
    tools = HostTools(registry, supervisor, routes, (folders, calls), "h1", tmp_path / "volumes", SessionTable(database))
    yield Host(registry, routes, witness, tools, folders, calls)
    await supervisor.close()
    await http.aclose()


async def test_a_tool_is_out_of_the_registry_before_it_ends_and_leaves_nothing(host: Host) -> None:
    volumes = host.folders.parent / "volumes"
    for folder in (host.folders / "t/cache", host.calls / "t", volumes / place_of_volumes("t") / "data"):
        folder.mkdir(parents=True)
    assert (await host.obey(ControlAction.START)).state is RunState.RUNNING
    assert (await host.obey(ControlAction.DESTROY)).state is RunState.STOPPED
    assert (host.witness.seen, await host.routes.list_all()) == ([()], ())
    assert [*host.folders.iterdir(), *host.calls.iterdir(), *volumes.iterdir()] == []


async def test_a_host_ends_a_tool_that_another_one_has_removed(host: Host) -> None:
    await host.obey(ControlAction.START)
    await host.registry.destroy("t")
    assert (await host.obey(ControlAction.DESTROY)).state is RunState.STOPPED
    assert (host.witness.seen, await host.routes.list_all()) == ([()], ())


async def test_a_tool_that_was_stopped_is_shown_as_that(host: Host) -> None:
    await host.obey(ControlAction.START)
    await host.obey(ControlAction.STOP)
    assert [(route.state, route.host) for route in await host.routes.list_all()] == [(RunState.STOPPED, "h1")]


async def test_what_is_part_of_the_engine_is_not_removed(host: Host) -> None:
    await host.registry.register(ToolManifest(tool_id="echo", name="Echo"), (BuiltinSource(handler="echo"),))
    with pytest.raises(ApplicationError) as refusal:
        await host.obey(ControlAction.DESTROY, "echo")
    assert refusal.value.type == ErrorType.PERMISSION_DENIED.value
    assert "echo" in await host.registry.list_ids()


@pytest.mark.parametrize(
    "parts",
    [{"tool_ids": ("t",)}, {"verify": VerifyProbe(tool_id="t")}, {"verify": VerifyProbe(tool_id="other", lists="t")}],
    ids=["step", "verify", "lists"],
)
async def test_what_stops_a_living_session_is_not_removed(host: Host, database: Database, parts: dict[str, object]) -> None:
    group = ToolGroup.model_validate({"group_id": "servers", "name": "Servers", **parts})
    view = SessionView(session_id="session-12345678", group_id="servers", state=SessionState.READY, opened_at=_AT)
    sessions = SessionTable(database)
    await sessions.open(OpenSession(session_id=view.session_id, group=group), view, None)
    with pytest.raises(ApplicationError) as refusal:
        await host.obey(ControlAction.DESTROY)
    assert (refusal.value.type, "GET /groups/servers/sessions/session-12345678" in refusal.value.message) == (
        ErrorType.PERMISSION_DENIED.value,
        True,
    )
    await sessions.note(view.model_copy(update={"state": SessionState.STOPPED, "ended_at": _AT}))
    assert (await host.obey(ControlAction.DESTROY)).state is RunState.STOPPED


async def test_the_folders_of_a_process_go_with_the_last_tool_that_shares_it(host: Host) -> None:
    for tool_id, process in (("t_a", "t"), ("t_b", "t"), ("u_a", "u")):
        source = LocalSource(host_dir="t", process=process)
        await host.registry.register(ToolManifest(tool_id=tool_id, name=tool_id), (source,))
        volumes = host.folders.parent / "volumes"
        for folder in (
            host.folders / f"{process}.shared/home",
            host.calls / f"{process}.shared",
            volumes / place_of_volumes(f"{process}.shared"),
        ):
            folder.mkdir(parents=True, exist_ok=True)
    await host.obey(ControlAction.DESTROY, "t_a")
    assert {folder.name for folder in host.folders.iterdir()} == {"t.shared", "u.shared"}
    await host.registry.destroy("t_b")  # by the order to another host
    await host.obey(ControlAction.DESTROY, "t_b")
    assert [folder.name for where in (host.folders, host.calls) for folder in where.iterdir()] == ["u.shared"] * 2
    assert [folder.name for folder in (host.folders.parent / "volumes").iterdir()] == [place_of_volumes("u.shared")]


async def test_the_folder_of_a_process_stays_that_any_version_runs_in(host: Host) -> None:
    for version, source in (("1.0.0", LocalSource(host_dir="t", process="t")), ("1.1.0", LocalSource(host_dir="t"))):
        await host.registry.register(ToolManifest(tool_id="t_a", name="t_a", version=version), (source,))
    (host.folders / "t.shared").mkdir(parents=True)
    await host.obey(ControlAction.DESTROY)
    assert [folder.name for folder in host.folders.iterdir()] == ["t.shared"]


async def test_the_folder_of_a_process_stays_that_comes_while_another_tool_goes(
    host: Host, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Registering(ToolRegistry):
        """A registry in which the tool is registered again right after it was read."""

        async def list_versions(self) -> tuple[ToolEntry, ...]:
            entries = await super().list_versions()
            await self.register(ToolManifest(tool_id="new", name="N"), (LocalSource(host_dir="n", process="n"),))
            (host.folders / "n.shared").mkdir(parents=True)
            return entries

    monkeypatch.setattr(host.tools, "_registry", Registering(ToolTable(database), RouteTable(database)))
    await host.obey(ControlAction.DESTROY)
    assert [folder.name for folder in host.folders.iterdir()] == ["n.shared"]


async def test_while_a_session_cannot_be_read_no_tool_is_removed(host: Host, database: Database) -> None:
    """A newer version has written the session, and its stop may need any of the tools."""
    assert await SessionTable(database).open(*opened(1), None)
    await not_to_be_read(database, "session-00000001")
    with pytest.raises(ApplicationError, match="session-00000001") as refused:
        await host.obey(ControlAction.DESTROY)
    assert (refused.value.type, refused.value.non_retryable) == (ErrorType.PERMISSION_DENIED, True)
    assert await host.registry.list_ids() == ("t",)
    await host.obey(ControlAction.STOP)
