"""The table of sessions of groups."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError
from sqlalchemy import func, insert, select, update
from structlog.testing import capture_logs

from engine.store.clock import timestamp
from engine.store.database import Database
from engine.store.session_names import session_names
from engine.store.sessions import SessionTable, SessionUnreadableError
from engine.store.tables import calls, group_sessions
from toolagent.contracts.groups import GroupStep, ToolGroup
from toolagent.contracts.sessions import OpenSession, SessionState, SessionView
from toolagent_service.groups.roles import marks_in

_AT = datetime(2026, 3, 26, tzinfo=UTC)
_GROUP = ToolGroup(
    group_id="servers",
    name="Servers",
    tool_ids=("launch", "stop"),
    lifecycle=True,
    steps=(
        GroupStep.model_validate({"tool_id": "launch", "role": "launch"}),
        GroupStep.model_validate({"tool_id": "stop", "role": "stop"}),
    ),
)


def opened(number: int, group: ToolGroup = _GROUP) -> tuple[OpenSession, SessionView]:
    session_id = f"session-{number:08}"
    view = SessionView(
        session_id=session_id, group_id=group.group_id, state=SessionState.LAUNCHING, opened_at=_AT + timedelta(seconds=number)
    )
    return OpenSession(session_id=session_id, group=group), view


async def test_a_group_has_no_more_sessions_than_it_may(database: Database) -> None:
    table = SessionTable(database)
    answers = await asyncio.gather(*(table.open(*opened(number), 2) for number in range(5)))
    assert sum(answers) == 2
    first, view = opened(answers.index(True))
    assert await table.open(first, view, 2), "asked again, the answer is the same"
    other = _GROUP.model_copy(update={"group_id": "others"})
    assert await table.open(*opened(9, other), 1)
    await table.note(view.model_copy(update={"state": SessionState.STOPPED, "ended_at": _AT}))
    assert await table.open(*opened(8), 2)


async def test_sessions_are_listed_newest_first_and_the_living_with_what_they_were_started_with(database: Database) -> None:
    table = SessionTable(database)
    for number in (1, 2, 3):
        assert await table.open(*opened(number), None)
    request, view = opened(2)
    ended = view.model_copy(update={"state": SessionState.FAILED, "ended_at": _AT})
    await table.note(ended)
    assert await table.get(request.session_id) == ended
    assert await table.get("session-unknown1") is None
    assert [one.session_id[-1] for one in await table.of_group("servers")] == ["3", "2", "1"]
    assert [one.session_id[-1] for one in await table.of_group("servers", living=True)] == ["3", "1"]
    assert await table.of_group("others") == ()
    assert await table.living() == (opened(1), opened(3))


async def test_a_session_is_found_by_its_marks_while_it_lives(database: Database) -> None:
    table, states = SessionTable(database), {SessionState.READY, SessionState.STOPPING}
    bound = GroupStep.model_validate({"tool_id": "stop", "role": "stop", "bindings": {"server": "$.id", "place": "$.place"}})
    group = _GROUP.model_copy(update={"steps": (_GROUP.steps[0], bound)})
    views: list[SessionView] = []
    for number, name in ((1, "a"), (2, "a"), (3, "b")):
        request, view = opened(number, group)
        assert await table.open(request, view, None)
        views.append(view.model_copy(update={"state": SessionState.READY, "launched": {"id": name, "place": "here"}}))
        await table.note(views[-1], group)
    marks = marks_in(group, bound, {"server": "a", "where": "here"})
    assert await table.named(marks, states) == (views[1], views[0])
    assert await table.named(marks * 300, states) == (views[1], views[0])
    assert await table.named(marks, {SessionState.STOPPING}) == await table.named((), states) == await table.named(((),), states) == ()
    await table.note(views[1].model_copy(update={"state": SessionState.STOPPED, "ended_at": _AT}), group)
    assert await table.named(marks, states) == (views[0],)
    assert len(await database.rows(select(session_names))) == 4, "two marks of each that lives"


@pytest.mark.parametrize("changes", [{}, {"state": "ready", "launched": {"id": "a"}}, {"state": "stopped", "ended_at": _AT}])
async def test_a_note_of_a_session_without_a_row_writes_nothing_and_says_so(database: Database, changes: dict[str, object]) -> None:
    table = SessionTable(database)
    request, view = opened(1)
    noted = SessionView.model_validate({**dict(view), **changes})
    assert await table.note(noted, _GROUP) is False
    assert (await table.get(view.session_id), await database.rows(select(session_names))) == (None, [])
    assert await table.open(request, view, None)
    assert await table.note(noted, _GROUP) is True


async def test_an_ended_session_that_is_recorded_late_has_no_marks(database: Database) -> None:
    table = SessionTable(database)
    bound = GroupStep.model_validate({"tool_id": "stop", "role": "stop", "bindings": {"server": "$.id"}})
    request, view = opened(1, _GROUP.model_copy(update={"steps": (_GROUP.steps[0], bound)}))
    ended = view.model_copy(update={"state": SessionState.STOPPED, "launched": {"id": "a"}, "ended_at": _AT})
    assert await table.open(request, ended, None)
    assert (await table.get(view.session_id), await database.rows(select(session_names))) == (ended, [])


async def test_sessions_without_a_row_are_told_apart(database: Database) -> None:
    table = SessionTable(database)
    for number in (1, 1_500):
        assert await table.open(*opened(number), None)
    asked = {f"session-{number:08}" for number in range(1, 2_101)}
    assert await table.unknown(asked) == asked - {"session-00000001", "session-00001500"}
    assert await table.unknown(()) == frozenset()


async def test_a_session_that_launches_is_looked_at_once_its_launch_has_succeeded(database: Database) -> None:
    table, states = SessionTable(database), {SessionState.LAUNCHING}
    request, view = opened(1)
    assert await table.open(request, view, None)
    noted = view.model_copy(update={"launch_call_id": "call-12345678"})
    await table.note(noted, _GROUP)
    assert await table.unnamed("servers", states) == ()
    texts = ("tool_id", "version", "fingerprint", "workflow_id", "run_id", "params", "caller")
    row = {**dict.fromkeys(texts, ""), "call_id": "call-12345678", "created_at": timestamp(_AT), "is_success": True}
    async with database.write() as connection:
        await connection.execute(insert(calls), [row])
    assert (await table.unnamed("servers", states), await table.unnamed("others", states)) == ((noted,), ())


async def not_to_be_read(database: Database, session_id: str, state: str = "launching") -> None:
    """A row that a newer version may write, with a state that this one does not know."""
    async with database.write() as connection:
        document = group_sessions.c.document
        later = update(group_sessions).where(group_sessions.c.session_id == session_id)
        await connection.execute(later.values(document=func.replace(document, f'"state":"{state}"', '"state":"resting"')))


async def test_a_row_that_cannot_be_read_is_left_out_of_lists(database: Database) -> None:
    table = SessionTable(database)
    for number in (1, 2):
        assert await table.open(*opened(number), None)
    await not_to_be_read(database, "session-00000001")
    with capture_logs() as logged:
        assert await table.living(all_of=False) == (opened(2),)
        assert await table.of_group("servers", living=True) == (opened(2)[1],)
    assert [(line["event"], line["session_id"]) for line in logged] == [("session_not_read", "session-00000001")] * 2
    with pytest.raises(SessionUnreadableError, match="session-00000001"):
        await table.living()
    with pytest.raises(ValidationError):
        await table.of_group("servers", living=True, all_of=True)
    with pytest.raises(ValidationError):
        await table.whole("session-00000001")


async def test_living_sessions_are_counted_by_state_and_those_that_stop_are_listed(database: Database) -> None:
    table = SessionTable(database)
    for number in range(4):
        assert await table.open(*opened(number), None)
    states = {1: SessionState.READY, 2: SessionState.STOPPING, 3: SessionState.STOPPED}
    for number, state in states.items():
        _, view = opened(number)
        await table.note(view.model_copy(update={"state": state, "ended_at": _AT if state is SessionState.STOPPED else None}))
    living = {"launching": 1, "ready": 1, "stopping": 1}
    assert (await table.living_by_state(), [view.session_id[-1] for view in await table.stopping()]) == (living, ["2"])
