"""Sessions without a workflow: launched servers are stopped, and ended sessions stay as they are."""

from collections.abc import Awaitable, Callable
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
from toolagent.contracts.sessions import OpenSession, SessionEnd, SessionState, SessionView
from toolagent.contracts.sources import LocalSource
from toolagent.core.schemas import MASK
from toolagent_service.contracts.sessions import OpenStep, SessionLife, SessionStep

_AT = datetime(2026, 3, 26, tzinfo=UTC)


async def _nothing() -> None: ...


@dataclass
class Workflows:
    """`running` are running, and `listed` as such. `meanwhile` is called before a single one is answered; `refused` cannot be started."""

    meanwhile: Callable[[], Awaitable[None]] = _nothing
    refused: str = ""
    running: tuple[tuple[str, str], ...] = ()
    listed: tuple[tuple[str, str], ...] = ()
    asked: list[str] = field(default_factory=list[str])
    lives: list[SessionLife] = field(default_factory=list[SessionLife])

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
