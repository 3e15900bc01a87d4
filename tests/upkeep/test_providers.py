"""A provider's list, compared with sessions: servers of no session are stopped, those of others are reported."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from pydantic import JsonValue

from engine.store.calls import CallTable
from engine.store.database import Database
from engine.store.events import LONGEST_ALERT, EventTable
from engine.store.groups import GroupTable
from engine.store.sessions import SessionTable
from engine.upkeep.hosts.residents import Residents
from engine.upkeep.sessions.providers import ProviderSweep
from tests.parts import tool_registry
from tests.workflows.session_paths import group_of
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.groups import ToolGroup, VerifyProbe
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.records import CallRecord, Event
from toolagent.contracts.sessions import AdoptedCall, OpenSession, SessionEnd, SessionState, SessionView
from toolagent.contracts.sources import LocalSource, ScriptLanguage, ScriptSource, ToolSource
from toolagent.core.calls.results import failed, succeeded
from toolagent_service.contracts.sessions import SessionLife
from toolagent_service.groups.roles import session_for
from toolagent_service.groups.sessions import launch_ids

_LONG_AGO = datetime(2026, 3, 26, tzinfo=UTC)
_EARLIER = datetime.now(UTC) - timedelta(hours=1)
_SESSION = "session-12345678"
_KEY = "sk-0123456789abcdefghij"
_FIRST, _LATE = "call-of-the-first-launch", "call-of-the-late-launch"
_UNAUTHORIZED, _UNPAID, _BUSY, _BROKEN = (
    ToolError(type=kind, message=f"The provider answers {status}.", details={"status_code": status})
    for kind, status in (
        (ErrorType.PERMISSION_DENIED, 401),
        (ErrorType.BUDGET_EXCEEDED, 402),
        (ErrorType.UNAVAILABLE, 429),
        (ErrorType.EXECUTION_ERROR, 500),
    )
)


@dataclass
class Provider:
    """A provider whose list is `answer`. `lives` are the workflows of sessions that were begun."""

    answer: JsonValue | ToolError = None
    asked: list[ToolCall] = field(default_factory=list[ToolCall])
    lives: list[SessionLife] = field(default_factory=list[SessionLife])
    recorded: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    async def listed(self, call: ToolCall) -> ToolResult:
        self.asked.append(call)
        if call.tool_id == "silent":
            raise ConnectionError("Its answer is pending.")
        if isinstance(self.answer, ToolError):
            return failed("call-listed01", call.tool_id, self.answer, _LONG_AGO)
        return succeeded("call-listed01", call.tool_id, self.answer, _LONG_AGO, execution_time=0.0, metadata={})

    async def under_way(self) -> tuple[tuple[str, str], ...]:
        return ()

    async def is_under_way(self, group_id: str, session_id: str) -> bool:
        return any((life.request.group.group_id, life.request.session_id) == (group_id, session_id) for life in self.lives)

    async def go_on(self, life: SessionLife) -> None:
        self.lives.append(life)

    async def record(self, group_id: str, session_id: str) -> None:
        self.recorded.append((group_id, session_id))


@dataclass
class Stage:
    provider: Provider
    sweep: ProviderSweep
    sessions: SessionTable
    calls: CallTable
    events: EventTable

    async def compared(self, answer: JsonValue | ToolError) -> Sequence[Event]:
        """The alerts after two rounds."""
        self.provider.answer = answer
        for _ in range(2):
            await self.sweep.run()
        return await self.events.of_tool("stop")

    async def session(self, state: SessionState, ended_at: datetime | None, launch_call_id: str = _FIRST) -> None:
        request = OpenSession(session_id=_SESSION, group=group_of())
        view = SessionView(
            session_id=_SESSION,
            group_id="servers",
            state=state,
            opened_at=_LONG_AGO,
            launch_call_id=launch_call_id,
            ended_at=ended_at,
            host="host-1",
        )
        await self.sessions.open(request, view, None)

    async def launched(
        self, call_id: str, tool_id: str = "launch", workflow_id: str = f"group/servers/{_SESSION}", error: ToolError | None = None
    ) -> None:
        record = CallRecord(
            call_id=call_id,
            tool_id=tool_id,
            version="1.0.0",
            fingerprint="f",
            workflow_id=workflow_id,
            run_id="r",
            created_at=_LONG_AGO,
        )
        good = succeeded(call_id, tool_id, {}, _LONG_AGO, execution_time=0.0, metadata={})
        result = good if error is None else failed(call_id, tool_id, error, _LONG_AGO)
        await self.calls.settle(record, result, ())


def _running(*call_ids: str) -> JsonValue:
    return {"servers": [{"server_id": f"server-of-{call_id}", "launched_by": call_id} for call_id in call_ids]}


@pytest_asyncio.fixture
async def stage(database: Database) -> Stage:
    return await staged(database, Provider())


async def staged(database: Database, provider: Provider) -> Stage:
    groups, sessions, calls, events = GroupTable(database), SessionTable(database), CallTable(database), EventTable(database)
    await groups.replace([group_of()])
    residents = Residents(sessions, tool_registry(database))
    sweep = ProviderSweep(groups, sessions, calls, events, provider, provider.listed, residents.is_kept_up)
    return Stage(provider, sweep, sessions, calls, events)


async def test_a_group_that_had_no_session_lately_is_not_asked_for(stage: Stage) -> None:
    assert not await stage.compared(_running(_FIRST))
    await stage.session(SessionState.STOPPED, _LONG_AGO)
    assert not await stage.compared(_running(_FIRST))
    assert not stage.provider.asked


@pytest.mark.parametrize(
    ("source", "usd_per_hour", "is_asked"),
    [
        (LocalSource(host_dir="x"), 0.0, False),
        (LocalSource(host_dir="x"), 2.5, True),
        (ScriptSource(script_path="x.py", language=ScriptLanguage.PYTHON), 0.0, True),
    ],
    ids=["process", "process-that-bills", "script"],
)
async def test_only_a_process_of_ours_that_costs_nothing_is_not_kept_up_by_what_ended_long_ago(
    stage: Stage, database: Database, source: ToolSource, usd_per_hour: float, *, is_asked: bool
) -> None:
    await tool_registry(database).register(ToolManifest(tool_id="list", name="L"), (source,))
    await GroupTable(database).replace([group_of(usd_per_hour=usd_per_hour)])
    await stage.session(SessionState.STOPPED, _EARLIER)
    await stage.compared(_running())
    assert bool(stage.provider.asked) is is_asked


async def test_what_a_living_session_has_is_left_alone(stage: Stage) -> None:
    await stage.session(SessionState.READY, None)
    await stage.launched(_FIRST)
    assert not await stage.compared(_running(_FIRST))
    assert not stage.provider.lives


@pytest.mark.parametrize(
    ("state", "ended_at"), [(SessionState.STOPPED, _EARLIER), (SessionState.FAILED, _EARLIER), (SessionState.READY, None)]
)
async def test_a_launch_that_no_session_has_any_more_is_stopped_by_a_session_of_its_own(
    stage: Stage, state: SessionState, ended_at: datetime | None
) -> None:
    await stage.session(state, ended_at)
    await stage.launched(_FIRST)
    await stage.launched(_LATE)
    told = await stage.compared(_running(_LATE))
    (life,) = stage.provider.lives
    assert (life.request.session_id, life.end) == (session_for("servers", _LATE, 0), SessionEnd.UNOWNED)
    assert life.view is not None
    assert (life.view.state, life.view.host) == (SessionState.READY, "host-1")
    assert life.view.launched == {"server_id": f"server-of-{_LATE}", "launched_by": _LATE}
    assert len(told) == 1
    assert [request.session_id for request, _ in await stage.sessions.living() if request.session_id != _SESSION] == [
        life.request.session_id
    ]


async def test_a_launch_of_unknown_end_is_asked_for_where_the_provider_cannot_list(stage: Stage, database: Database) -> None:
    asking = group_of().model_copy(update={"verify": VerifyProbe(tool_id="launch", asks="launched_by", since="after", others="others")})
    await GroupTable(database).replace([asking])
    request = OpenSession(session_id=_SESSION, group=asking, params={"size": 3})
    lost, refused, _ = launch_ids(request)
    ended = datetime.now(UTC) - timedelta(minutes=5)
    view = SessionView(session_id=_SESSION, group_id="servers", state=SessionState.FAILED, opened_at=_EARLIER, ended_at=ended)
    await stage.sessions.open(request, view, None)
    await stage.launched(lost, error=_BROKEN)
    await stage.launched(refused, error=_UNAUTHORIZED)
    nothing = ToolError(type=ErrorType.REJECTED, message="No server.", details={"cause": "not_found"})
    for answer in (nothing, _BROKEN, _BUSY):
        await stage.compared(answer)
    assert not stage.provider.lives
    await stage.compared({"server_id": "late"})
    assert {(call.tool_id, call.params["launched_by"]) for call in stage.provider.asked} == {("launch", lost)}
    assert stage.provider.asked[0].params == {"size": 3, "launched_by": lost, "after": _EARLIER.isoformat(), "others": []}
    (life,) = stage.provider.lives
    assert life.view is not None
    assert (life.end, life.view.launched, life.view.launch_call_id) == (SessionEnd.UNOWNED, {"server_id": "late"}, lost)


def _numbered(group: ToolGroup) -> ToolGroup:
    """Like `group`, at a provider whose list does not say which call launched a server."""
    probe = VerifyProbe(tool_id="launch", asks="launched_by", lists="list", items="$.servers", launch_id="$.server_id")
    return group.model_copy(update={"verify": probe})


def _session(number: int, **more: object) -> SessionView:
    mine: dict[str, object] = {"session_id": f"session-number-{number}", "group_id": "servers", "opened_at": _EARLIER}
    return SessionView.model_validate(mine | {"state": SessionState.READY, "launch_call_id": f"call-number-{number}"} | more)


async def _listed(stage: Stage, database: Database, *views: SessionView) -> None:
    group = _numbered(group_of())
    await GroupTable(database).replace([group])
    for view in views:
        await stage.sessions.open(OpenSession(session_id=view.session_id, group=group), view, None)


async def test_what_an_ended_session_launched_and_a_list_without_calls_shows_is_stopped(stage: Stage, database: Database) -> None:
    ended = {"state": SessionState.STOPPED, "ended_at": _EARLIER + timedelta(minutes=1)}
    lately = {"state": SessionState.STOPPED, "ended_at": datetime.now(UTC) - timedelta(seconds=5)}
    mine = [{"launched": {"server_id": f"server-{number}"}} for number in range(3)]
    await _listed(stage, database, _session(0, **mine[0]), _session(1, **mine[1], **ended), _session(2, **mine[2], **lately))
    told = await stage.compared({"servers": [{"server_id": f"server-{number}", "status": "Ready"} for number in range(3)]})
    (life,) = stage.provider.lives
    assert life.view is not None
    assert (life.end, life.view.launched, life.view.launch_call_id) == (
        SessionEnd.UNOWNED,
        {"server_id": "server-1", "status": "Ready"},
        "call-number-1",
    )
    assert (life.request.session_id, life.view.opened_at) == (session_for("servers", "call-number-1", 0), _EARLIER)
    assert len(told) == 1
    assert {(call.tool_id, call.caller.caller_id) for call in stage.provider.asked} == {("list", "service")}


async def test_what_a_list_without_calls_shows_of_nobody_is_told_once_and_left_alone(stage: Stage, database: Database) -> None:
    await _listed(stage, database, _session(0, launched={"server_id": "server-0"}))
    (told,) = await stage.compared({"servers": [{"server_id": "server-0"}, {"server_id": "of-others"}]})
    assert isinstance(told.details, dict)
    assert told.details["item"] == {"server_id": "of-others"}
    assert not stage.provider.lives


async def test_what_is_listed_while_a_session_launches_is_told_of_when_it_turns_out_to_be_of_others(
    stage: Stage, database: Database
) -> None:
    """However many sessions have begun meanwhile: a server that existed before them is not theirs."""
    launching = _session(0, state=SessionState.LAUNCHING)
    await _listed(stage, database, launching)
    listed: JsonValue = {"servers": [{"server_id": "server-0"}, {"server_id": "of-others"}]}
    assert not await stage.compared(listed)
    await stage.sessions.note(_session(0, launched={"server_id": "server-0"}))
    await _listed(stage, database, _session(1, state=SessionState.LAUNCHING))
    (told,) = await stage.compared(listed)
    assert isinstance(told.details, dict)
    assert told.details["item"] == {"server_id": "of-others"}


async def test_a_session_of_another_group_at_the_same_provider_is_no_stranger(stage: Stage, database: Database) -> None:
    other = _numbered(group_of()).model_copy(update={"group_id": "other"})
    await GroupTable(database).replace([other, _numbered(group_of())])
    for view in (_session(0, launched={"server_id": "server-0"}), _session(1, group_id="other", launched={"server_id": "server-1"})):
        await stage.sessions.open(OpenSession(session_id=view.session_id, group=other), view, None)
    assert not await stage.compared({"servers": [{"server_id": "server-0"}, {"server_id": "server-1"}]})


@pytest.mark.parametrize("jump", [timedelta(days=-2), timedelta(days=2)])
async def test_a_clock_that_jumps_takes_nothing_from_a_session_that_lives(stage: Stage, database: Database, jump: timedelta) -> None:
    """The clock was set after the session began, and after another one ended."""
    began, ended = datetime.now(UTC) - jump, datetime.now(UTC) + abs(jump)
    over = _session(1, state=SessionState.STOPPED, opened_at=began, ended_at=ended, launched={"server_id": "server-1"})
    await _listed(stage, database, _session(0, opened_at=began, launched={"server_id": "server-0"}), over)
    assert not await stage.compared({"servers": [{"server_id": "server-0"}, {"server_id": "server-1"}]})
    assert not stage.provider.lives


async def test_a_launch_of_unknown_end_is_asked_for_among_any_number_of_sessions(stage: Stage, database: Database) -> None:
    asking = group_of().model_copy(update={"verify": VerifyProbe(tool_id="launch", asks="launched_by", others="others", launch_id="$.id")})
    await GroupTable(database).replace([asking])
    call = ToolCall(tool_id="launch", params={"size": 3})
    adopts = AdoptedCall(call=call, call_id=_LATE, workflow_id=_LATE, run_id="r")
    request = OpenSession(session_id=_SESSION, group=asking, params={}, adopts=adopts)
    ended = {"state": SessionState.FAILED, "ended_at": datetime.now(UTC) - timedelta(minutes=50)}
    await stage.sessions.open(request, _session(0, session_id=_SESSION, launch_call_id=_LATE, **ended), None)
    await stage.launched(_LATE, error=_BROKEN)
    living = _session(1, opened_at=_LONG_AGO, launched={"id": "of-another"})
    newer = [_session(number, opened_at=datetime.now(UTC), **ended) for number in range(2, 120)]
    for view in (living, *newer):
        await stage.sessions.open(OpenSession(session_id=view.session_id, group=asking), view, None)
    await stage.compared({"id": "late"})
    assert {str(call.params["others"]) for call in stage.provider.asked[:1]} == {"['of-another']"}
    (life,) = stage.provider.lives
    assert life.view is not None
    assert (life.view.launched, life.request.params, life.view.opened_at) == ({"id": "late"}, {"size": 3}, _EARLIER)


async def test_an_adopted_launch_that_its_session_has_no_more_is_stopped(stage: Stage) -> None:
    adopting = session_for("servers", _LATE)
    await stage.launched(_LATE, workflow_id=_LATE)
    request = OpenSession(session_id=adopting, group=group_of())
    view = SessionView(session_id=adopting, group_id="servers", state=SessionState.FAILED, opened_at=_LONG_AGO, ended_at=_EARLIER)
    await stage.sessions.open(request, view, None)
    await stage.compared(_running(_LATE))
    assert [life.request.session_id for life in stage.provider.lives] == [session_for("servers", _LATE, 0)]


async def test_a_provider_that_cannot_be_asked_keeps_no_other_from_being_compared(stage: Stage, database: Database) -> None:
    await stage.session(SessionState.STOPPED, _EARLIER)
    await stage.launched(_FIRST)
    silent = group_of().model_copy(update={"group_id": "a-silent-one"})
    probe = VerifyProbe(tool_id="silent")
    await GroupTable(database).replace([silent.model_copy(update={"verify": probe}), group_of()])
    view = SessionView(session_id="session-of-silent", group_id="a-silent-one", state=SessionState.READY, opened_at=_EARLIER)
    await stage.sessions.open(OpenSession(session_id="session-of-silent", group=silent), view, None)
    await stage.compared(_running(_FIRST))
    assert "silent" in {call.tool_id for call in stage.provider.asked}
    assert [life.end for life in stage.provider.lives] == [SessionEnd.UNOWNED]


async def test_what_was_stopped_a_moment_ago_may_be_listed_still(stage: Stage) -> None:
    await stage.session(SessionState.STOPPED, datetime.now(UTC) - timedelta(seconds=5))
    await stage.launched(_FIRST)
    assert not await stage.compared(_running(_FIRST))
    assert not stage.provider.lives


async def test_what_others_launched_is_told_once_and_never_stopped(stage: Stage) -> None:
    await stage.session(SessionState.STOPPED, _EARLIER)
    await stage.launched("call-of-another-tool", tool_id="echo")
    listed: JsonValue = [
        {"server_id": "1", "launched_by": "call-of-another-tool", "up_s": 3},
        {"server_id": "2", "launched_by": "somebody"},
        {"server_id": "3", "launched_by": None},
        {"server_id": "4"},
        "nonsense",
    ]
    told = await stage.compared({"servers": listed})
    assert len(told) == 5
    assert {"server_id": "1"} in [event.details["item"] for event in told if isinstance(event.details, dict)]
    assert not stage.provider.lives


async def test_an_alert_shows_nothing_of_what_a_provider_says_but_what_a_person_has_to_know(stage: Stage) -> None:
    await stage.session(SessionState.STOPPED, _EARLIER)
    (told,) = await stage.compared({"servers": [{"id": "4", "note": _KEY}]})
    assert isinstance(told.details, dict)
    assert isinstance(told.details["item"], dict)
    assert (told.details["item"]["fields"], {*told.details["item"]}) == (["id", "note"], {"hash", "fields"})
    wrong = ToolError(type=ErrorType.EXECUTION_ERROR, message=f"The key {_KEY} is wrong. {'x' * 5_000}")
    unlisted = (await stage.compared(wrong))[-1].details
    assert isinstance(unlisted, dict)
    assert "not known what the provider runs" in str(unlisted["reason"])
    assert (_KEY in str(unlisted), len(str(unlisted["reason"]))) == (False, LONGEST_ALERT)


@pytest.mark.parametrize(
    "answer",
    [_UNAUTHORIZED, _UNPAID, _BUSY, _BROKEN, None, "garbage", {"servers": "garbage"}, {"other": []}, []],
    ids=["401", "402", "429", "500", "nothing", "text", "no-list", "another-field", "a-list"],
)
async def test_a_provider_that_gives_no_list_has_nothing_stopped_and_is_told_of_once_an_hour(
    stage: Stage, answer: JsonValue | ToolError
) -> None:
    await stage.session(SessionState.STOPPED, _EARLIER)
    await stage.launched(_FIRST)
    told = await stage.compared(answer)
    assert len({event.event_id for event in told}) == len(told) <= 2  # the hour may change between two rounds
    assert isinstance(told[0].details, dict)
    assert "not known what the provider runs" in str(told[0].details["reason"])
    assert not stage.provider.lives


async def test_what_is_still_there_after_three_stops_is_for_a_person(stage: Stage) -> None:
    await stage.session(SessionState.STOPPED, _EARLIER)
    await stage.launched(_FIRST)
    for number in range(3):
        session_id = session_for("servers", _FIRST, number)
        view = SessionView(session_id=session_id, group_id="servers", state=SessionState.STOPPED, opened_at=_LONG_AGO, ended_at=_EARLIER)
        await stage.sessions.open(OpenSession(session_id=session_id, group=group_of()), view, None)
    (told,) = await stage.compared(_running(_FIRST))
    assert isinstance(told.details, dict)
    assert "3 times" in str(told.details["reason"])
    assert not stage.provider.lives
