"""A draining host: what it stops, what it keeps, and its report."""

from collections.abc import Collection
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from engine.calling.intake import Intake
from engine.registry.registry import ToolRegistry
from engine.store.database import Database
from engine.store.hosts import HostClaim, HostTable, HostWork
from engine.store.routes import RouteTable
from engine.store.sessions import SessionTable
from engine.store.tasks import TaskTable
from engine.upkeep.hosts import draining
from engine.upkeep.hosts.draining import Hosts, OwnDrain
from engine.upkeep.hosts.residents import Residents
from tests.parts import tool_registry
from tests.store.test_sessions import not_to_be_read
from toolagent.contracts.groups import GroupStep, ToolGroup
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.routes import RunState, ToolRoute
from toolagent.contracts.sessions import OpenSession, SessionState, SessionView
from toolagent.contracts.sources import LocalSource, RemoteSource

_AT = datetime(2026, 11, 24, tzinfo=UTC)
_PEN = ToolManifest(tool_id="pen", name="Pen")


class _Tools:
    """The running tools are in `up`; a stopped one leaves it."""

    def __init__(self, *up: str) -> None:
        self.up = [*up]

    def tool_ids(self) -> Collection[str]:
        return tuple(self.up)

    async def forget(self, tool_id: str) -> None:
        self.up.remove(tool_id)


class _House:
    """The host `a`, and what runs on it."""

    def __init__(self, database: Database) -> None:
        self.sessions_in = database
        self.hosts, self.routes = HostTable(database, 3600), RouteTable(database, 3600)
        self.sessions, self.registry = SessionTable(database), tool_registry(database)
        self.residents = Residents(self.sessions, self.registry)
        self.all = Hosts(self.hosts, self.routes, TaskTable(database), self.residents)
        self.intake = Intake(("default",))
        self.claims = {host: HostClaim(host, host, host, {"default": 2}) for host in "ab"}

    async def up(self, *tool_ids: str) -> tuple[_Tools, OwnDrain]:
        for tool_id in tool_ids:
            await self.routes.save(ToolRoute(tool_id=tool_id, state=RunState.RUNNING, host="a"), "1.0.0")
        tools = _Tools(*tool_ids)
        return tools, OwnDrain("a", self.intake, tools, self.routes, self.residents)

    async def beat(self) -> None:
        work = HostWork(self.intake.calls, self.intake.drained_of)
        self.intake.heed(await self.hosts.beat(self.claims["a"], work))

    async def session(self, number: int, source: LocalSource | RemoteSource) -> SessionView:
        """A session on `a`, of a group with tools `launch` and `stop` of this kind."""
        await _register(self.registry, source, "launch", "stop")
        steps = tuple(GroupStep.model_validate({"tool_id": name, "role": name}) for name in ("launch", "stop"))
        group = ToolGroup(group_id="servers", name="Servers", lifecycle=True, steps=steps)
        session_id = f"session-{number:08}"
        view = SessionView(session_id=session_id, group_id="servers", state=SessionState.READY, host="a", opened_at=_AT)
        await self.sessions.open(OpenSession(session_id=session_id, group=group), view, None)
        return view


async def _register(registry: ToolRegistry, source: LocalSource | RemoteSource, *tool_ids: str) -> None:
    for tool_id in tool_ids:
        await registry.register(ToolManifest(tool_id=tool_id, name=tool_id), (source,))


@pytest_asyncio.fixture
async def house(database: Database, monkeypatch: pytest.MonkeyPatch) -> _House:
    monkeypatch.setattr(draining, "_SETTLED_S", 0.0)
    monkeypatch.setattr(draining, "_NOTED_S", 0.0)
    house = _House(database)
    for claim in house.claims.values():
        await house.hosts.claim(claim)
    return house


async def test_a_tool_stops_once_no_call_is_in_it_and_then_the_host_is_drained(house: _House) -> None:
    tools, own = await house.up("pen", "ink")
    await own.look()
    assert tools.up == ["pen", "ink"], "it does not drain"
    begun = await house.all.drain("a")
    assert begun is not None
    assert (begun.is_drained, begun.tools, begun.warnings) == (False, 2, ())
    await house.beat()
    with house.intake.held(_PEN):
        await own.look()
        await house.beat()
        told = await house.all.progress("a")
        assert told is not None
        assert (tools.up, told.is_drained, told.calls, told.tools) == (["pen"], False, 1, 1)
    await own.look()
    await house.beat()
    told = await house.all.progress("a")
    assert told is not None
    assert (tools.up, told.is_drained, told.calls, told.tools) == ([], True, 0, 0)
    assert [route.host for route in await house.routes.list_all()] == []


async def test_it_waits_until_nobody_places_calls_on_it_any_more(house: _House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "_SETTLED_S", 3600.0)
    tools, own = await house.up("pen")
    await house.all.drain("a")
    await house.beat()
    await own.look()
    assert (tools.up, house.intake.drained_of) == (["pen"], None)


async def test_tools_of_sessions_that_live_on_it_stay_up_until_these_end(house: _House) -> None:
    view = await house.session(1, LocalSource(host_dir="x"))
    tools, own = await house.up("pen", "launch")
    await house.all.drain("a")
    await house.beat()
    await own.look()
    assert tools.up == ["launch"]
    await house.beat()
    told = await house.all.progress("a")
    assert told is not None
    assert (told.is_drained, told.tools, told.sessions) == (False, 1, 1)
    await house.sessions.note(view.model_copy(update={"state": SessionState.STOPPED, "ended_at": _AT}))
    await own.look()
    await house.beat()
    told = await house.all.progress("a")
    assert told is not None
    assert (told.is_drained, told.tools, told.sessions) == (True, 0, 0)


async def test_while_a_session_cannot_be_read_all_tools_stay_and_hosts_are_listed(house: _House) -> None:
    await house.session(1, LocalSource(host_dir="x"))
    await not_to_be_read(house.sessions_in, "session-00000001", "ready")
    tools, own = await house.up("pen", "launch")
    await house.all.drain("a")
    await house.beat()
    await own.look()
    assert (tools.up, house.intake.drained_of) == (["pen", "launch"], None)
    assert [one.host for one in (await house.all.listing()).hosts] == ["a", "b"]


async def test_a_tool_that_has_just_launched_stays_until_its_session_can_have_been_noted(
    house: _House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draining, "_NOTED_S", 3600.0)
    tools, own = await house.up("pen", "ink")
    await house.all.drain("a")
    await house.beat()
    with house.intake.held(_PEN):
        pass
    await own.look()
    assert (tools.up, house.intake.drained_of) == (["pen"], None)


async def test_a_session_whose_tools_run_elsewhere_holds_no_host(house: _House) -> None:
    await house.session(1, RemoteSource(remote_url="http://far.example"))
    assert (await house.residents.by_host(), await house.residents.tools_on("a")) == ({}, set())


async def test_a_host_that_takes_calls_again_stops_nothing(house: _House) -> None:
    tools, own = await house.up("pen")
    await house.all.drain("a")
    await house.beat()
    ended = await house.all.undrain("a")
    await house.beat()
    await own.look()
    assert ended is not None
    assert (ended.host.draining_since, ended.is_drained, house.intake.is_open, tools.up) == (None, False, True, ["pen"])


async def test_who_drains_the_last_host_or_a_dead_one_is_warned(house: _House, database: Database) -> None:
    await house.all.drain("a")
    told = await house.all.drain("b")
    assert told is not None
    assert [warning.partition(".")[0] for warning in told.warnings] == [
        "No other host takes calls: they are answered `unavailable` until another host is started, or the drain of one is ended"
    ]
    await house.hosts.undrain("a")
    await house.hosts.release(house.claims["b"])
    told = await house.all.progress("b")
    assert told is not None
    assert (told.host.is_alive, told.is_drained, told.warnings) == (False, True, ("The host is not alive. It drains when it comes back.",))


async def test_hosts_are_listed_with_what_is_on_them(house: _House) -> None:
    await house.session(1, LocalSource(host_dir="x"))
    await house.up("pen", "launch")
    found = (await house.all.listing()).hosts
    assert [(host.host, host.tools, host.sessions) for host in found] == [("a", 2, 1), ("b", 0, 0)]
