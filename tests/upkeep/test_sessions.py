"""Sessions without a workflow: launched servers are stopped, and ended sessions stay as they are."""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from engine.groups.account import SessionAccounts
from engine.store.database import Database
from engine.store.events import EventTable
from engine.store.groups import GroupTable
from engine.store.sessions import SessionTable
from engine.store.tools import ToolTable
from engine.upkeep.sessions.sweep import SessionSweep
from tests.parts import tool_registry
from tests.store.test_sessions import not_to_be_read
from tests.workflows.session_paths import group_of
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.records import Event
from toolagent.contracts.sessions import OpenSession, SessionEnd, SessionState, SessionView
from toolagent.contracts.sources import LocalSource
from toolagent.core.failures import StoreUnavailableError
from toolagent.core.schemas import MASK
from toolagent_service.contracts.sessions import OpenStep, SessionLife, SessionStep

_AT = datetime(2026, 3, 26, tzinfo=UTC)


async def _nothing() -> object: ...


@dataclass
class Workflows:
    """`running` are running, and `listed` as such. `meanwhile` is called before a single one is answered; `refused` cannot be started."""

    meanwhile: Callable[[], Awaitable[object]] = _nothing
    refused: str = ""
    running: tuple[tuple[str, str], ...] = ()
    listed: tuple[tuple[str, str], ...] = ()
    asked: list[str] = field(default_factory=list[str])
    lives: list[SessionLife] = field(default_factory=list[SessionLife])
    recorded: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    async def under_way(self) -> tuple[tuple[str, str], ...]:
        return self.listed

    async def is_under_way(self, group_id: str, session_id: str) -> bool:
        await self.meanwhile()
        self.asked.append(session_id)
        return (group_id, session_id) in self.running

    async def go_on(self, life: SessionLife) -> None:
        if life.request.session_id == self.refused:
            raise ValueError("too large")
        self.lives.append(life)

    async def record(self, group_id: str, session_id: str) -> None:
        self.recorded.append((group_id, session_id))


class Unwritable(EventTable):
    """Alerts cannot be written so often."""

    failures = 1

    async def warn(self, alert: Event) -> None:
        self.failures -= 1
        if self.failures >= 0:
            raise StoreUnavailableError("The disk is full.")
        await super().warn(alert)


def _view(session_id: str, **more: object) -> SessionView:
    whole = {"session_id": session_id, "group_id": "servers", "state": SessionState.LAUNCHING, "opened_at": _AT, **more}
    return SessionView.model_validate(whole)


async def _opened(database: Database, *session_ids: str) -> SessionTable:
    table = SessionTable(database)
    for session_id in session_ids:
        await table.open(OpenSession(session_id=session_id, group=group_of()), _view(session_id), None)
    return table


async def test_a_session_without_a_workflow_goes_on_as_it_was_when_that_ended(database: Database) -> None:
    table = await _opened(database, "session-12345678")
    ready = _view("session-12345678", state=SessionState.READY, launch_call_id="call-12345678", launched={"server_id": "1"})
    workflows = Workflows(lambda: table.note(ready))
    await SessionSweep(table, workflows, EventTable(database)).run()
    assert [(life.view, life.end) for life in workflows.lives] == [(ready, SessionEnd.CANCELLED)]


async def test_a_session_that_ends_while_it_is_looked_at_has_ended(database: Database) -> None:
    table = await _opened(database, "session-12345678")
    workflows = Workflows(lambda: table.note(_view("session-12345678", state=SessionState.STOPPED, ended_at=_AT)))
    await SessionSweep(table, workflows, EventTable(database)).run()
    assert not workflows.lives


async def test_a_session_that_cannot_be_begun_keeps_no_other_from_its_stop(database: Database) -> None:
    table = await _opened(database, "session-of-a-sort", "session-of-others", "session-that-runs")
    workflows = Workflows(refused="session-of-a-sort", running=(("servers", "session-that-runs"),))
    await SessionSweep(table, workflows, EventTable(database)).run()
    assert [life.request.session_id for life in workflows.lives] == ["session-of-others"]


async def test_what_is_listed_as_under_way_is_seldom_asked_for(database: Database) -> None:
    """In one round of four the list is not trusted, because it may be wrong."""
    table = await _opened(database, "session-12345678", "session-of-others")
    workflows = Workflows(listed=(("servers", "session-of-others"),))
    sweep = SessionSweep(table, workflows, EventTable(database))
    for _ in range(5):
        await sweep.run()
    assert [workflows.asked.count(session_id) for session_id in ("session-12345678", "session-of-others")] == [5, 2]


class _Unlisting(Workflows):
    """Lists nothing once, and then fails."""

    has_listed = False

    async def under_way(self) -> tuple[tuple[str, str], ...]:
        if self.has_listed:
            raise ValueError("a status that nobody knows")
        self.has_listed = True
        return ()


async def test_sessions_are_asked_for_in_the_fifth_round_though_no_list_can_be_read(database: Database) -> None:
    workflows = _Unlisting()
    sweep = SessionSweep(await _opened(database, "session-12345678", "session-of-others"), workflows, EventTable(database))
    await sweep.run()
    for _ in range(3):
        with pytest.raises(ValueError, match="status"):
            await sweep.run()
    assert len(workflows.lives) == 2
    with pytest.raises(ValueError, match="status"):
        await sweep.run()
    assert len(workflows.lives) == 4


async def test_a_session_without_a_row_is_asked_to_write_it(database: Database) -> None:
    """An older database was restored. That is looked for at first, and seldom later."""
    table = await _opened(database, "session-12345678", "session-that-ended")
    await table.note(_view("session-that-ended", state=SessionState.STOPPED, ended_at=_AT))
    known, ended, lost = (("servers", session_id) for session_id in ("session-12345678", "session-that-ended", "session-of-others"))
    workflows = Workflows(running=(known,), listed=(known, ended, lost))
    sweep = SessionSweep(table, workflows, EventTable(database))
    for times in (1, 1, 1, 1, 2):
        await sweep.run()
        assert workflows.recorded == [lost] * times
    assert not workflows.lives


class _Deaf(Workflows):
    """The first of them cannot be signalled."""

    async def record(self, group_id: str, session_id: str) -> None:
        await super().record(group_id, session_id)
        if session_id == "session-deaf":
            raise ValueError("The limit of signals is reached.")


async def test_a_session_that_never_writes_its_row_is_asked_ten_times_and_keeps_no_other_from_it(database: Database) -> None:
    deaf, other = ("servers", "session-deaf"), ("servers", "session-other")
    workflows = _Deaf(listed=(deaf, other))
    sweep = SessionSweep(SessionTable(database), workflows, EventTable(database))
    for number in range(100):
        workflows.listed = () if number % 8 == 4 else (deaf, other)  # Temporal does not list them now
        await sweep.run()
    assert workflows.recorded == [deaf, other] * 10


async def test_a_row_that_was_not_asked_for_as_temporal_was_away_is_asked_for_later(database: Database) -> None:
    class Away(Workflows):
        async def record(self, group_id: str, session_id: str) -> None:
            await super().record(group_id, session_id)
            raise ConnectionError("Temporal does not answer.")

    workflows = Away(listed=(("servers", "session-lost"),))
    sweep = SessionSweep(SessionTable(database), workflows, EventTable(database))
    for number in range(60):
        with pytest.raises(ConnectionError) if number % 4 == 0 else nullcontext():
            await sweep.run()
    assert len(workflows.recorded) == 15


async def test_a_session_that_cannot_be_read_keeps_no_other_from_its_stop_and_an_operator_is_told(database: Database) -> None:
    """A newer version of the service has written it."""
    table = await _opened(database, "session-12345678", "session-of-others")
    await not_to_be_read(database, "session-12345678")
    workflows, events = Workflows(), EventTable(database)
    for _ in range(2):
        await SessionSweep(table, workflows, EventTable(database)).run()
    assert [life.request.session_id for life in workflows.lives] == ["session-of-others"] * 2
    (alert,) = await events.alerts(timedelta(days=1), 10)
    assert isinstance(alert.details, dict)
    assert (alert.details["session_id"], "cannot be read" in str(alert.details["reason"])) == ("session-12345678", True)


@pytest.mark.parametrize(("refused", "told_why"), [("", "ended each time"), ("session-12345678", "could not be begun")])
async def test_an_operator_is_told_of_a_session_whose_workflow_ends_again_and_again(
    database: Database, refused: str, told_why: str
) -> None:
    table = await _opened(database, "session-12345678", "session-of-others")
    workflows, events = Workflows(running=(("servers", "session-of-others"),), refused=refused), EventTable(database)
    sweep = SessionSweep(table, workflows, events)
    for alerts in (0, 0, 1, 1, 1, 2):
        await sweep.run()
        assert len(told := await events.alerts(timedelta(days=1), 10)) == alerts
    assert [isinstance(one.details, dict) and one.details["session_id"] for one in told] == ["session-12345678"] * 2
    assert all(told_why in str(one.details) for one in told)


async def test_an_alert_that_cannot_be_written_comes_the_next_time_and_keeps_no_session_from_its_stop(database: Database) -> None:
    table = await _opened(database, "session-12345678", "session-of-others")
    workflows, events = Workflows(running=(("servers", "session-of-others"),)), Unwritable(database)
    sweep = SessionSweep(table, workflows, events)
    for alerts in (0, 0, 0, 1, 1, 1, 2):
        await sweep.run()
        assert len(await events.alerts(timedelta(days=1), 10)) == alerts
    assert [life.request.session_id for life in workflows.lives] == ["session-12345678"] * 7


async def test_a_session_that_cannot_be_read_keeps_no_other_from_its_stop_though_nobody_can_be_told(database: Database) -> None:
    table = await _opened(database, "session-12345678", "session-of-others")
    await not_to_be_read(database, "session-12345678")
    workflows, events = Workflows(), Unwritable(database)
    sweep = SessionSweep(table, workflows, events)
    for alerts in (0, 1):
        await sweep.run()
        assert len(await events.alerts(timedelta(days=1), 10)) == alerts
    assert [life.request.session_id for life in workflows.lives] == ["session-of-others"] * 2


async def test_the_versions_that_are_active_are_those_of_a_session(database: Database) -> None:
    registry = tool_registry(database)
    for tool_id, version in (("launch", "1.0.0"), ("launch", "1.1.0"), ("list", "2.0.0"), ("other", "1.0.0")):
        await registry.register(ToolManifest(tool_id=tool_id, name=tool_id, version=version), (LocalSource(host_dir="x"),))
    accounts = SessionAccounts(GroupTable(database), SessionTable(database), EventTable(database), ToolTable(database))
    assert await accounts.versions_of(group_of()) == {"launch": "1.1.0", "list": "2.0.0"}


async def test_a_session_that_has_launched_is_opened_as_it_is(database: Database) -> None:
    """Its workflow was reset, and does not know that. One whose first step is only repeated begins."""
    sessions = await _opened(database, "session-00000001")
    accounts = SessionAccounts(GroupTable(database), sessions, EventTable(database), ToolTable(database))
    step = OpenStep(request=OpenSession(session_id="session-00000001", group=group_of()), view=_view("session-00000001"))
    assert await accounts.open(step) is True
    launched = step.view.model_copy(update={"launch_call_id": "call-12345678", "state": SessionState.STOPPING})
    await sessions.note(launched)
    assert await accounts.open(step) == launched


async def test_a_session_that_has_begun_its_launch_gets_its_row_again_though_its_group_has_no_room(database: Database) -> None:
    sessions = await _opened(database, "session-of-others")
    accounts = SessionAccounts(GroupTable(database), sessions, EventTable(database), ToolTable(database))
    view = _view("session-12345678", state=SessionState.READY, launch_call_id="call-12345678", launched={"server_id": "1"})
    request = OpenSession(session_id="session-12345678", group=group_of(max_sessions=1))
    assert await accounts.note(SessionStep(group=request.group, view=view)) is False
    assert await accounts.open(OpenStep(request=request, view=_view("session-12345678"))) is False
    assert await accounts.open(OpenStep(request=request, view=view)) is True
    assert await accounts.note(SessionStep(group=request.group, view=view)) is True
    assert await sessions.whole("session-12345678") == (request, view)


async def test_each_alert_of_a_session_is_told_once(database: Database) -> None:
    events = EventTable(database)
    accounts = SessionAccounts(GroupTable(database), await _opened(database, "session-00000001"), events, ToolTable(database))
    with capture_logs() as logged:
        for alert in ("asked 3 times", "asked 3 times", "asked 6 times with sk-0123456789abcdefghij"):
            await accounts.note(SessionStep(group=group_of(), view=_view("session-00000001"), alert=alert))
    said = await events.of_tool("stop")
    assert [line["details"] for line in logged] == [event.details for event in said]
    assert [event.details["reason"] for event in said if isinstance(event.details, dict)] == [
        "asked 3 times",
        f"asked 6 times with {MASK}",
    ]
