"""Calls outside of sessions: which of them belong to a session, and to which one."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from pydantic import JsonValue
from sqlalchemy import insert
from structlog.testing import capture_logs

from engine.calls.checks.asked import Asked
from engine.calls.memberships import Memberships
from engine.store.claims import ClaimTable
from engine.store.database import Database
from engine.store.groups import GroupTable
from engine.store.sessions import SessionTable
from engine.store.tables import group_sessions
from tests.calls.conftest import Desk
from tests.calls.test_admission import refused
from tests.parts import tool_registry
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError
from toolagent.contracts.groups import GroupRole, ToolGroup
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sessions import AdoptedCall, OpenSession, SessionState, SessionView
from toolagent.contracts.sources import LocalSource
from toolagent_service.contracts.steps import Admission, AdmitRequest, Admitted, Answered, Finished, Grouped, OfSession
from toolagent_service.groups.roles import first_stop, marks_in, marks_of, names_session, session_for
from toolagent_service.groups.sessions import is_gone

_AT = datetime(2026, 3, 26, tzinfo=UTC)
_ID = "call-12345678"
_TOOLS = ("launch", "run", "stop", "other_launch")


def group_of(group_id: str, launch: str = "launch", **more: JsonValue) -> ToolGroup:
    bound: JsonValue = {"server_id": "$.server_id"}
    steps: JsonValue = [
        {"tool_id": launch, "role": "launch"},
        {"tool_id": "run", "role": "run", "bindings": bound},
        {"tool_id": "stop", "role": "stop", "bindings": bound},
    ]
    fields: dict[str, JsonValue] = {"name": group_id, "tool_ids": [*_TOOLS], "lifecycle": True, "steps": steps}
    return ToolGroup.model_validate({"group_id": group_id, **fields, **more})


@dataclass
class Front:
    desk: Desk
    groups: GroupTable
    sessions: SessionTable
    claims: ClaimTable

    async def admit(self, tool_id: str, params: dict[str, JsonValue] | None = None, *, alone: bool = True, **more: object) -> Admission:
        request = AdmitRequest.model_validate(
            {
                "call": ToolCall(tool_id=tool_id, params=params or {}),
                "call_id": _ID,
                "workflow_id": "w",
                "run_id": "r",
                "alone": alone,
                **more,
            }
        )
        return (await self.desk.admissions.admit(request)).admission

    async def session(self, group_id: str, session_id: str, state: SessionState = SessionState.READY, **more: object) -> None:
        view = SessionView.model_validate({"session_id": session_id, "group_id": group_id, "state": state, "opened_at": _AT, **more})
        await self.sessions.open(OpenSession(session_id=session_id, group=group_of(group_id)), view, None)


@pytest_asyncio.fixture
async def front(desk: Desk, database: Database) -> Front:
    registry = tool_registry(database)
    for tool_id in _TOOLS:
        await registry.register(ToolManifest(tool_id=tool_id, name=tool_id), (LocalSource(host_dir="x"),))
    groups = GroupTable(database)
    await groups.replace([group_of("second"), group_of("first"), group_of("third", "other_launch"), group_of("advice", lifecycle=False)])
    return Front(desk, groups, SessionTable(database), ClaimTable(database))


async def test_a_launch_belongs_to_the_first_group_by_id(front: Front) -> None:
    part = await front.admit("launch")
    assert isinstance(part, Grouped)
    assert (part.role, part.group.group_id, part.session_id) == (GroupRole.LAUNCH, "first", session_for("first", _ID))
    assert isinstance(await front.admit("launch", alone=False), Admitted), "a session makes it"


async def test_groups_are_read_once_for_all_that_ask_at_once(front: Front, database: Database) -> None:
    class Counted(GroupTable):
        reads = 0

        async def with_lifecycle(self) -> tuple[ToolGroup, ...]:
            self.reads += 1
            return await super().with_lifecycle()

    await front.groups.replace([group_of("g")])
    groups = Counted(database)
    roles = Memberships(groups, front.sessions, front.desk.calls)
    assert await asyncio.gather(*(roles.has_role("run") for _ in range(8))) == [True] * 8
    assert groups.reads == 1


async def test_a_launch_whose_session_has_ended_is_refused(front: Front) -> None:
    await front.session("first", session_for("first", _ID), SessionState.FAILED, ended_at=_AT)
    result = refused(await front.admit("launch"))
    assert (result.error_type, result.error and "Call again" in result.error.message) == (ErrorType.UNAVAILABLE, True)


async def test_a_look_for_a_launch_is_none(front: Front) -> None:
    await front.groups.replace([group_of("first", verify={"tool_id": "launch", "asks": "launched_by"})])
    assert isinstance(await front.admit("launch", {"launched_by": "call-87654321"}), Admitted)
    assert isinstance(await front.admit("launch", call_id="call-87654321"), Grouped)
    assert isinstance(await front.admit("launch", {"launched_by": None}, call_id="call-11112222"), Grouped)


@pytest.mark.parametrize("tool_id", ["asks", "taken_away"])
async def test_a_stop_is_made_though_its_tool_wants_a_confirmation_or_was_deactivated(front: Front, tool_id: str) -> None:
    assert isinstance(await front.admit(tool_id, alone=False), Answered)
    assert isinstance(await front.admit(tool_id, alone=False, is_stop=True, call_id="call-of-the-stop"), Admitted)


@pytest.mark.parametrize(
    ("prefers", "is_stop", "version"),
    [("1.0.0", False, "1.0.0"), (None, False, "2.0.0"), ("0.1.0", False, "2.0.0"), ("0.9.0", False, "2.0.0"), ("0.9.0", True, "0.9.0")],
    ids=["kept", "none", "unknown", "deactivated", "stop-of-deactivated"],
)
async def test_a_call_of_a_session_goes_to_the_version_it_was_launched_with_while_that_can_be_called(
    front: Front, prefers: str | None, is_stop: bool, version: str
) -> None:
    for number in ("0.9.0", "2.0.0"):
        await front.desk.registry.register(ToolManifest(tool_id="run", name="run", version=number), (LocalSource(host_dir="x"),))
    await front.desk.registry.deactivate("run", "0.9.0")
    made = await front.admit("run", alone=False, prefer_version=prefers, is_stop=is_stop)
    assert isinstance(made, Admitted)
    assert made.plan.version == version


async def test_a_group_whose_lifecycle_cannot_be_lived_has_no_sessions(front: Front) -> None:
    await front.groups.replace([group_of("first", tool_ids=["launch"])])
    assert isinstance(await front.admit("launch"), Admitted)


@pytest.mark.parametrize(
    ("params", "session"),
    [
        ({"server_id": "1"}, "session-of-second"),
        ({"container_id": "1"}, "session-of-second"),
        ({"server_id": "2", "container_id": "1"}, None),
        ({"server_id": "2"}, None),
        ({"server_id": None}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("tool_id", ["run", "stop"])
async def test_what_names_a_living_session_belongs_to_it(
    front: Front, tool_id: str, params: dict[str, JsonValue], session: str | None
) -> None:
    await front.session("first", "session-of-first", SessionState.STOPPED, launched={"server_id": "1"}, ended_at=_AT)
    await front.session("second", "session-of-second", launched={"server_id": "1"}, host="h7", versions={tool_id: "1.2.3"})
    await front.session("third", "session-of-third", launched={"server_id": "3"})
    await front.session("third", "session-with-nothing", launched=None)
    part = await front.admit(tool_id, params)
    if session is None:
        assert isinstance(part, Admitted)
        return
    assert isinstance(part, Grouped)
    assert (part.role.value, part.session_id, part.host, part.version) == (tool_id, session, "h7", "1.2.3")
    assert part.lasts_s > 600


@pytest.mark.parametrize(
    ("launched", "given"),
    [(1, 1.0), (1.5, 1.5), (1, True), ("1", "1"), ("é\ud800", "é\ud800"), ({"b": [1, None], "a": 2}, {"a": 2.0, "b": [True, None]})],
    ids=str,
)
@pytest.mark.parametrize("name", ["server_id", "by_another_name"])
def test_marks_of_equal_values_are_equal(launched: JsonValue, given: JsonValue, name: str) -> None:
    group, params = group_of("servers"), {"size": "large", name: given}
    step = group.steps[1]
    assert names_session(step, {"server_id": launched}, params)
    assert [each & marks_of(group, {"server_id": launched}) != set() for each in marks_in(group, step, params)] == [True]
    assert not marks_of(group, {"other_id": launched})
    assert not marks_of(group_of("others"), {"server_id": launched}) & marks_in(group, step, params)[0]


def test_a_call_has_a_bounded_number_of_marks_and_none_of_a_value_that_is_too_long() -> None:
    group = group_of("servers")
    step = group.steps[1].model_copy(update={"bindings": {f"absent_{number}": f"$.place_{number}" for number in range(33)}})
    assert sum(map(len, marks_in(group, step, {str(number): number for number in range(2_000)}))) in range(900, 1_001)
    assert marks_in(group, group.steps[1], {"long": "x" * 2_000, "short": "y"}) == marks_in(group, group.steps[1], {"short": "y"})


async def test_a_call_finds_its_session_among_a_thousand_that_live_and_reads_no_other(front: Front, database: Database) -> None:
    await front.session("first", "session-of-long-ago", launched={"server_id": "1"})
    row = {"group_id": "first", "state": "ready", "document": "{}", "request": "{}", "opened_at": "9", "updated_at": "9", "unnamed": None}
    async with database.write() as connection:
        await connection.execute(insert(group_sessions), [{**row, "session_id": f"session-{number:08}"} for number in range(1_001)])
    with capture_logs() as logged:
        part = await front.admit("stop", {"server_id": "1"})
        other = await front.admit("stop", {"server_id": "2"}, call_id="call-87654321")
    assert (isinstance(part, Grouped) and part.session_id, isinstance(other, Admitted), logged) == ("session-of-long-ago", True, [])


async def test_a_session_that_a_host_of_the_version_before_wrote_is_found(front: Front) -> None:
    """It lacks the marks by which calls name it. A note without the group is one of that version."""
    await front.session("first", "session-12345678", SessionState.LAUNCHING, launch_call_id=_ID)
    view = await front.sessions.get("session-12345678")
    assert view is not None
    await front.sessions.note(view.model_copy(update={"state": SessionState.READY, "launched": {"server_id": "1"}}))
    assert isinstance(await front.admit("run", {"server_id": "1"}, call_id="call-87654321"), Grouped)


async def test_a_session_that_is_named_between_two_looks_is_found(front: Front, database: Database) -> None:
    class Meanwhile(SessionTable):
        """A table in which the session records its launch right after the first look."""

        async def named(self, marks: Sequence[Collection[str]], states: Collection[SessionState]) -> tuple[SessionView, ...]:
            return await self._then_noted(await super().named(marks, states))

        async def unnamed(self, group_id: str, states: Collection[SessionState]) -> tuple[SessionView, ...]:
            return await self._then_noted(await super().unnamed(group_id, states))

        async def _then_noted(self, found: tuple[SessionView, ...]) -> tuple[SessionView, ...]:
            view = await self.get("session-12345678")
            assert view is not None
            await self.note(view.model_copy(update={"state": SessionState.READY, "launched": {"server_id": "1"}}), group_of("first"))
            return found

    await front.admit("launch", alone=False, instead=Finished(output={"server_id": "1"}))
    await front.session("first", "session-12345678", SessionState.LAUNCHING, launch_call_id=_ID)
    entry = await front.desk.registry.entry("stop")
    asked = Asked("call-87654321", ToolCall(tool_id="stop", params={"server_id": "1"}), "f", {}, entry)
    part = await Memberships(front.groups, Meanwhile(database), front.desk.calls).of(asked, 1.0)
    assert part is not None
    assert part.session_id == "session-12345678"


async def test_a_stop_that_takes_nothing_of_the_launch_is_that_of_the_newest_session(front: Front) -> None:
    """Made beside the session, the stop would be made twice. A run without bindings may belong to any session, and keeps none alive."""
    group = group_of("first", steps=[{"tool_id": tool_id, "role": tool_id} for tool_id in ("launch", "run", "stop")])
    await front.groups.replace([group])
    assert isinstance(await front.admit("stop", call_id="call-before-all"), Admitted)
    for number, state, ended_at in ((1, "ready", None), (2, "stopping", None), (3, "launching", None), (4, "stopped", _AT)):
        at = _AT + timedelta(seconds=number)
        await front.session("first", f"session-0000000{number}", SessionState(state), opened_at=at, ended_at=ended_at)
    part = await front.admit("stop")
    assert (isinstance(part, Grouped) and part.session_id, isinstance(await front.admit("run", call_id="call-87654321"), Admitted)) == (
        "session-00000002",
        True,
    )
    asked = AdoptedCall(call=ToolCall(tool_id="stop"), call_id=_ID, workflow_id="w", run_id="r")
    assert first_stop(group, None, [asked]) == asked


async def test_a_stop_that_takes_nothing_of_the_launch_goes_to_no_older_session_when_its_own_has_ended(front: Front) -> None:
    steps: JsonValue = [{"tool_id": tool_id, "role": tool_id} for tool_id in ("launch", "run", "stop")]
    await front.groups.replace([group_of("first", steps=steps), group_of("second", steps=steps)])
    for group_id, session_id, seconds in (
        ("first", "session-of-first", 0),
        ("second", "session-00000001", 1),
        ("second", "session-00000002", 2),
    ):
        await front.session(group_id, session_id, opened_at=_AT + timedelta(seconds=seconds))
    part = await front.admit("stop", stops="session-00000001")
    assert isinstance(part, Grouped)
    assert (part.group.group_id, part.session_id) == ("second", "session-00000001")
    ended = await front.sessions.get("session-00000001")
    assert ended is not None
    await front.sessions.note(ended.model_copy(update={"state": SessionState.STOPPED, "ended_at": _AT}))
    result = refused(await front.admit("stop", stops="session-00000001"))
    assert (result.error_type, is_gone(result)) == (ErrorType.EXECUTION_ERROR, True)
    assert result.error is not None
    assert "session-00000001" in result.error.message


async def test_a_stop_whose_session_has_no_row_is_not_answered_as_gone(front: Front) -> None:
    """An older database was restored, and the session may live. It would take that answer for the provider's."""
    await front.groups.replace([group_of("first", steps=[{"tool_id": tool_id, "role": tool_id} for tool_id in ("launch", "run", "stop")])])
    result = refused(await front.admit("stop", stops="session-00000001"))
    assert (result.error_type, is_gone(result)) == (ErrorType.UNAVAILABLE, False)


async def test_a_session_that_stops_takes_stops_and_no_runs(front: Front) -> None:
    await front.session("first", "session-12345678", SessionState.STOPPING, launched={"server_id": "1"})
    assert isinstance(await front.admit("run", {"server_id": "1"}), Admitted)
    assert isinstance(await front.admit("stop", {"server_id": "1"}, call_id="call-87654321"), Grouped)


async def test_a_session_is_known_by_its_launch_before_it_says_so(front: Front) -> None:
    given = Finished(output={"server_id": "1"})
    await front.admit("launch", alone=False, instead=given)
    await front.session("first", "session-12345678", SessionState.LAUNCHING, launch_call_id=_ID)
    part = await front.admit("run", {"server_id": "1"}, call_id="call-87654321")
    assert isinstance(part, Grouped)
    assert part.session_id == "session-12345678"


async def test_the_first_answer_of_a_call_that_is_not_made_stands_and_it_is_not_sent_any_more(front: Front) -> None:
    session = OfSession(group_id="first", session_id="session-12345678")
    given_up = Finished(error=ToolError(type=ErrorType.CANCELLED, message="Given up."))
    ends = (given_up, Finished(output=1))
    results = [refused(await front.admit("launch", alone=False, instead=end, session=session)) for end in ends]
    assert [result.error_type for result in results] == [ErrorType.CANCELLED] * 2
    assert results[0].metadata == {"way": "workflow", "group_id": "first", "session_id": "session-12345678"}
    again = refused(await front.admit("launch"))
    assert again.error_type is ErrorType.CANCELLED
    record = await front.desk.calls.get(_ID)
    assert record is not None
    assert await front.desk.calls.mark_sent(record) == 0
