"""Rounds over the running tools of a host: with real processes, on a real database."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
from pydantic import JsonValue
from structlog.testing import capture_logs

from engine.calling.intake import Intake
from engine.runtimes.local.runtime import LocalRuntime
from engine.runtimes.running.dispatch import Dispatch
from engine.runtimes.running.supervisor import Reply, Supervisor
from engine.runtimes.runtime import Running, Vitals
from engine.store.calls import CallTable
from engine.store.catalog_state import CatalogState
from engine.store.database import Database
from engine.store.hosts import HostClaim, HostTable
from engine.store.routes import RouteTable
from engine.store.sessions import SessionTable
from engine.store.tools import ToolTable
from engine.upkeep.tools.hot_tools import HotTools
from engine.upkeep.tools.maintenance import HostMaintenance, HostParts
from engine.upkeep.tools.scheduling import EVICTION, KeepingLimits, Modes, tools_of_sessions
from tests.parts import tool_registry
from tests.runtimes.conftest import Routes, entry_of, eventually, is_gone, local_source, request_of, silent
from tests.store.test_sessions import not_to_be_read, opened
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.groups import GroupStep, ToolGroup
from toolagent.contracts.manifest import SchedulingMode
from toolagent.contracts.routes import RunState, ToolRoute
from toolagent.contracts.sessions import OpenSession, SessionState, SessionView
from toolagent.contracts.sources import BuiltinSource, LocalSource
from toolagent_service.contracts.maintenance import HostRound

LONG = KeepingLimits(300.0, 5, EVICTION["lru"])
_STOPS = 4
SOON = KeepingLimits(0.0, 5, EVICTION["lru"], stateless_idle_s=0.0)
HOT, STATELESS = SchedulingMode.HOT, SchedulingMode.STATELESS


def tool(name: str, mode: SchedulingMode | None = None, **source: str) -> ToolEntry:
    entry = entry_of(local_source(health_path="/health", **source), tool_id=name)
    return entry.model_copy(update={"manifest": entry.manifest.model_copy(update={"scheduling_mode": mode})})


@dataclass(frozen=True)
class Host:
    """A maintained host."""

    supervisor: Supervisor
    database: Database
    folder: Path
    intake: Intake = field(default_factory=Intake)

    async def register(self, *entries: ToolEntry) -> None:
        for entry in entries:
            await tool_registry(self.database).register(entry.manifest, entry.sources)

    def maintenance(self, limits: KeepingLimits = LONG, sessions: Callable[[], Awaitable[frozenset[str]]] | None = None) -> HostMaintenance:
        modes = Modes(ToolTable(self.database), CatalogState(self.database))
        calls, routes = CallTable(self.database), RouteTable(self.database)
        hot = HotTools(self.supervisor, tool_registry(self.database), routes, calls, self.intake, "here")
        sessions = sessions or tools_of_sessions(SessionTable(self.database), "here")
        return HostMaintenance(HostParts("here", self.supervisor.keeping, modes, hot, limits, sessions))

    async def round(self, limits: KeepingLimits = LONG) -> HostRound:
        return await self.maintenance(limits).round()

    async def up(self, *entries: ToolEntry) -> list[int]:
        pids = [(await self.supervisor.start(entry, silent)).pid for entry in entries]
        return [pid for pid in pids if pid is not None]

    async def call(self, entry: ToolEntry, **params: JsonValue) -> Reply:
        return await self.supervisor.call(Dispatch(entry, request_of(60.0, **params)))

    async def working(self, entry: ToolEntry) -> asyncio.Task[Reply]:
        """A call that runs until it is released."""
        call = asyncio.create_task(self.call(entry, mode="slow", until="go"))
        await eventually(lambda: any((home / "hanging").exists() for home in self.folder.glob("tools/*/home")))
        return call

    async def let_go(self, call: asyncio.Task[Reply]) -> None:
        for home in self.folder.glob("tools/*/home"):
            (home / "go").touch()
        await call

    def state(self, entry: ToolEntry) -> tuple[RunState, str | None]:
        route = self.supervisor.route(entry.manifest.tool_id)
        assert route is not None
        return route.state, route.last_error


@pytest_asyncio.fixture
async def host(supervisor: Supervisor, database: Database, state: Path) -> Host:
    return Host(supervisor, database, state)


async def test_an_idle_cold_tool_is_stopped_and_its_next_call_starts_it(host: Host) -> None:
    cold, other = tool("cold"), tool("other")
    [pid, _] = await host.up(cold, other)
    assert await host.round() == HostRound(host="here", checked=2)
    assert sorted((await host.round(SOON)).stopped) == ["cold", "other"]
    assert is_gone(pid)
    assert host.state(cold) == (RunState.STOPPED, None)
    assert (await host.call(cold, x=1)).active_source == 0
    assert host.state(cold) == (RunState.RUNNING, None)


async def test_calls_that_come_while_a_tool_is_stopped_because_it_was_idle_never_fail(host: Host) -> None:
    cold = tool("cold")
    answered = stopped = 0

    async def caller(number: int) -> None:
        nonlocal answered
        while stopped < _STOPS:
            await host.call(cold, x=number)
            answered += 1
            await asyncio.sleep(0.2 * number)

    async def stopper() -> None:
        nonlocal stopped
        maintenance = host.maintenance(SOON)
        while stopped < _STOPS:
            stopped += len((await maintenance.round()).stopped)

    async with asyncio.timeout(120):
        await asyncio.gather(*map(caller, range(1, 3)), stopper())
    assert answered >= stopped


async def test_a_stateless_tool_is_stopped_at_once_and_a_hot_one_is_not(host: Host) -> None:
    stateless, hot = tool("stateless", STATELESS), tool("hot", HOT)
    await host.register(stateless, hot)
    await host.up(stateless, hot)
    limits = KeepingLimits(300.0, 5, EVICTION["lru"], stateless_idle_s=0.0)
    assert await host.round(limits) == HostRound(host="here", checked=2, stopped=("stateless",))


async def test_what_works_or_holds_sessions_is_not_stopped(host: Host) -> None:
    working, holding = tool("working"), tool("holding")
    await host.call(holding, mode="health", sessions=2)
    call = await host.working(working)
    assert (await host.round(SOON)).stopped == ()
    await host.let_go(call)
    await host.call(holding, mode="health", sessions=0)
    assert {*(await host.round(SOON)).stopped} == {"working", "holding"}


@pytest.mark.parametrize(("where", "stopped"), [("here", ()), (None, ()), ("elsewhere", ("launch",))])
async def test_a_tool_of_a_living_session_on_this_host_is_not_stopped(host: Host, where: str | None, stopped: tuple[str, ...]) -> None:
    launch = tool("launch")
    steps = [GroupStep.model_validate({"tool_id": name, "role": name}) for name in ("launch", "stop")]
    group = ToolGroup(group_id="servers", name="Servers", lifecycle=True, steps=tuple(steps))
    opened = datetime.now(UTC)
    view = SessionView(session_id="session-00000001", group_id="servers", state=SessionState.READY, host=where, opened_at=opened)
    assert await SessionTable(host.database).open(OpenSession(session_id=view.session_id, group=group), view, None)
    await host.up(launch)
    assert (await host.round(SOON)).stopped == stopped
    await SessionTable(host.database).note(view.model_copy(update={"state": SessionState.STOPPED, "ended_at": opened}))
    assert (await host.round(SOON)).stopped == (() if stopped else ("launch",))


async def test_while_a_session_cannot_be_read_nothing_is_stopped_and_all_is_looked_after(host: Host) -> None:
    assert await SessionTable(host.database).open(*opened(1), None)
    await not_to_be_read(host.database, "session-00000001")
    await host.up(tool("launch"))
    with capture_logs() as logged:
        assert await host.round(SOON) == HostRound(host="here", checked=1)
    assert [line["session_id"] for line in logged if line["event"] == "tools_kept_up"] == ["session-00000001"]


async def test_what_a_call_of_this_round_may_have_opened_a_session_in_is_not_stopped(host: Host) -> None:
    launch, other = tool("launch"), tool("other")
    await host.up(launch, other)

    async def opened_meanwhile() -> frozenset[str]:
        await host.call(launch, x=1)
        return frozenset()

    maintenance = host.maintenance(SOON, opened_meanwhile)
    assert (await maintenance.round()).stopped == ("other",)


async def test_tools_of_one_process_are_stopped_together_once_all_are_unused(host: Host) -> None:
    one, two = tool("one", process="group"), tool("two", process="group")
    pids = await host.up(one, two)
    assert len({*pids}) == 1
    call = await host.working(one)
    assert (await host.round(SOON)).stopped == ()
    await host.let_go(call)
    assert await host.round(SOON) == HostRound(host="here", checked=1, stopped=("one", "two"))
    assert is_gone(pids[0])


async def test_the_second_failed_check_in_a_row_is_an_alert_and_the_next_call_starts_it_anew(host: Host, routes: Routes) -> None:
    sick = tool("sick")
    [pid] = await host.up(sick)
    await host.call(sick, mode="health", status=500)
    healthy = datetime.now(UTC)
    assert await host.round() == HostRound(host="here", checked=1)
    assert host.state(sick)[0] is RunState.RUNNING
    await host.call(sick, mode="health", status=200)
    await host.round()
    await host.call(sick, mode="health", status=503)
    await host.round()
    assert routes.alerts == []
    assert await host.round() == HostRound(host="here", checked=1, unhealthy=("sick",))
    assert host.state(sick) == (RunState.ERROR, "It is not healthy: /health answered 503.")
    [alert] = routes.alerts
    assert isinstance(alert.details, dict)
    assert (alert.details["tool_id"], alert.details["error"]) == ("sick", "It is not healthy: /health answered 503.")
    assert datetime.fromisoformat(str(alert.details["last_healthy"])) > healthy
    assert is_gone(pid)
    await host.call(sick, x=1)
    assert await host.round() == HostRound(host="here", checked=1)


async def test_a_check_that_fails_for_a_reason_of_ours_keeps_no_other_tool_from_its_turn(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd, cold = tool("odd"), tool("cold")
    await host.up(odd, cold)
    vitals = LocalRuntime.vitals

    async def failing(self: LocalRuntime, running: Running, source: LocalSource, timeout_s: float) -> Vitals:
        if running.pid == odd_pid:
            raise RuntimeError("Nobody foresaw it.")
        return await vitals(self, running, source, timeout_s)

    monkeypatch.setattr(LocalRuntime, "vitals", failing)
    route = host.supervisor.route("odd")
    assert route is not None
    odd_pid = route.pid
    assert await host.round(SOON) == HostRound(host="here", checked=2, stopped=("cold",))


async def test_a_tool_that_answers_no_check_while_it_works_is_not_ended(host: Host, routes: Routes) -> None:
    busy = tool("busy")
    await host.call(busy, mode="health", status=500)
    call = await host.working(busy)
    assert [await host.round() for _ in range(3)] == [HostRound(host="here")] * 3
    await host.let_go(call)
    assert routes.alerts == []


async def test_a_killed_process_is_an_alert_without_any_round(host: Host, routes: Routes) -> None:
    [pid] = await host.up(tool("killed"))
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: bool(routes.alerts))
    assert await host.round() == HostRound(host="here")


async def test_hot_tools_are_started_up_to_their_number_and_again_after_they_ended(host: Host) -> None:
    hot = [tool(f"hot{number}", HOT) for number in range(3)]
    await host.register(*hot, tool("cold"))
    limits = KeepingLimits(300.0, 2, EVICTION["lru"])
    maintenance = host.maintenance(limits)
    assert (await maintenance.round()).started == ("hot0", "hot1")
    await eventually(lambda: len(host.supervisor.keeping.all()) == 2)
    assert await maintenance.round() == HostRound(host="here", checked=2)
    route = host.supervisor.route("hot0")
    assert route is not None
    assert route.pid is not None
    os.kill(route.pid, signal.SIGKILL)
    await eventually(lambda: host.state(hot[0])[0] is RunState.ERROR)
    [again] = (await maintenance.round()).started
    await eventually(lambda: host.supervisor.is_running(again, "1.0.0"))
    await maintenance.close()


async def test_the_hot_tool_that_was_used_longest_ago_is_evicted_unless_it_works(host: Host) -> None:
    hot = [tool(f"hot{number}", HOT) for number in range(3)]
    await host.register(*hot)
    await host.up(*hot)
    await host.call(hot[1], x=1)
    await host.call(hot[0], x=1)
    limits = KeepingLimits(300.0, 2, EVICTION["lru"])
    working = await host.working(hot[2])
    assert (await host.round(limits)).evicted == ("hot1",)
    await host.let_go(working)
    assert await host.round(limits) == HostRound(host="here", checked=2)


async def test_a_hot_tool_that_somebody_stopped_stays_so_until_it_is_called(host: Host) -> None:
    hot = tool("hot", HOT)
    await host.register(hot)
    maintenance = host.maintenance()
    assert (await maintenance.round()).started == ("hot",)
    await eventually(lambda: host.supervisor.is_running("hot", "1.0.0"))
    await maintenance.round()
    await host.supervisor.stop("hot")
    assert (await maintenance.round()).started == ()
    await host.call(hot, x=1)
    await maintenance.round()
    route = host.supervisor.route("hot")
    assert route is not None
    assert route.pid is not None
    os.kill(route.pid, signal.SIGKILL)
    await eventually(lambda: host.state(hot)[0] is RunState.ERROR)
    assert (await maintenance.round()).started == ("hot",)
    await maintenance.close()


async def test_a_hot_tool_that_cannot_be_started_is_left_alone_until_the_catalog_changes(host: Host) -> None:
    lost = tool("lost", HOT)
    lost = lost.model_copy(update={"sources": (local_source("nowhere"),)})
    await host.register(lost)
    maintenance = host.maintenance()
    assert (await maintenance.round()).started == ("lost",)
    await eventually(lambda: host.state(lost)[0] is RunState.ERROR if host.supervisor.route("lost") else False)
    await asyncio.sleep(0)
    assert (await maintenance.round()).started == ()
    await host.register(tool("lost", HOT))
    assert (await maintenance.round()).started == ("lost",)
    await eventually(lambda: host.supervisor.is_running("lost", "1.0.0"))


async def test_a_hot_tool_that_runs_on_another_living_host_is_not_started_here_unless_that_drains(host: Host) -> None:
    await host.register(tool("hot", HOT))
    claim = HostClaim("elsewhere", "1", "there", {})
    hosts = HostTable(host.database, 3600.0)
    await hosts.claim(claim)
    route = ToolRoute(tool_id="hot", state=RunState.RUNNING, host="elsewhere")
    await RouteTable(host.database).save(route, "1.0.0")
    maintenance = host.maintenance()
    assert (await maintenance.round()).started == ()
    await hosts.drain("elsewhere")
    assert (await maintenance.round()).started == ("hot",)
    await maintenance.close()
    await hosts.undrain("elsewhere")
    maintenance = host.maintenance()
    assert (await maintenance.round()).started == ()
    await hosts.release(claim)
    assert (await maintenance.round()).started == ("hot",)
    await maintenance.close()


async def test_a_host_that_drains_starts_no_hot_tool_and_starts_it_again_when_that_is_undone(host: Host) -> None:
    hot = tool("hot", HOT)
    await host.register(hot)
    maintenance = host.maintenance()
    host.intake.heed("now")
    assert (await maintenance.round()).started == ()
    host.intake.heed(None)
    assert (await maintenance.round()).started == ("hot",)
    await eventually(lambda: host.supervisor.is_running("hot", "1.0.0"))
    await maintenance.round()
    host.intake.heed("again")
    await host.supervisor.forget("hot")
    assert (await maintenance.round()).started == ()
    host.intake.heed(None)
    assert (await maintenance.round()).started == ("hot",)
    await eventually(lambda: host.supervisor.is_running("hot", "1.0.0"))
    await maintenance.close()


async def test_rounds_are_made_one_at_a_time(host: Host) -> None:
    await host.up(tool("cold"))
    maintenance = host.maintenance(SOON)
    rounds = await asyncio.gather(*(maintenance.turn() for _ in range(3)))
    assert sorted(one.stopped for one in rounds) == [(), (), ("cold",)]


async def test_hot_tools_that_need_no_process_are_looked_at_once(host: Host) -> None:
    echo = entry_of(BuiltinSource(handler="echo"), tool_id="echo")
    await host.register(echo.model_copy(update={"manifest": echo.manifest.model_copy(update={"scheduling_mode": HOT})}))
    assert [await host.round() for _ in range(2)] == [HostRound(host="here")] * 2
