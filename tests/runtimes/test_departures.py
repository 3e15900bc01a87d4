"""A tool that is removed from the catalog while it runs ends, and its route is removed."""

import psutil

from engine.runtimes.running.departures import Departures
from engine.runtimes.running.supervisor import Supervisor
from tests.runtimes.conftest import entry_of, silent


class Routes:
    """Records the forgotten routes."""

    def __init__(self) -> None:
        self.forgotten: list[tuple[str, str]] = []

    async def forget(self, tool_id: str, host: str) -> None:
        self.forgotten.append((tool_id, host))


async def test_what_the_registry_has_no_more_is_stopped_and_its_route_forgotten(supervisor: Supervisor) -> None:
    started = await supervisor.start(entry_of(), silent)
    registered, routes = {"versatile"}, Routes()

    async def ids() -> set[str]:
        return registered

    departures = Departures(supervisor, routes, ids, "here")
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

    assert await Departures(supervisor, Routes(), ids, "here").end() == ()
    assert supervisor.route("versatile") == started
