"""Rules of sessions of groups."""

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import JsonValue, ValidationError

from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.groups import ToolGroup, VerifyProbe
from toolagent.contracts.sessions import AdoptedCall, OpenSession, SessionEnd, SessionRun, SessionState, SessionView
from toolagent.core.calls.results import failed, succeeded
from toolagent.core.catalog.lifecycles import lifecycle_fault
from toolagent_service.groups import sessions
from toolagent_service.groups.sessions import NoSuchFieldError, NoSuchStepError

_AT = datetime(2026, 3, 26, tzinfo=UTC)
_STEPS: list[dict[str, JsonValue]] = [
    {"tool_id": "launch", "role": "launch"},
    {"tool_id": "work", "role": "run", "params": {"depth": 1, "server_id": "none"}, "bindings": {"server_id": "$.server.id"}},
    {"tool_id": "stop", "role": "stop", "bindings": {"server_id": "$.server.id"}},
]


def group(**more: object) -> ToolGroup:
    whole = {"group_id": "g", "name": "G", "tool_ids": ["launch", "work", "stop"], "lifecycle": True, "steps": _STEPS, **more}
    return ToolGroup.model_validate(whole)


def view(**more: object) -> SessionView:
    return SessionView.model_validate(
        {"session_id": "session-12345678", "group_id": "g", "state": SessionState.READY, "opened_at": _AT, **more}
    )


def result(error_type: ErrorType, **details: JsonValue) -> ToolResult:
    return failed("call-12345678", "stop", ToolError(type=error_type, message="no", details=details), _AT)


def answered(output: JsonValue) -> ToolResult:
    return succeeded("call-12345678", "list", output, _AT, execution_time=0.0, metadata={})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"steps": _STEPS[:2]}, "one step with the role 'stop'"),
        ({"steps": [*_STEPS, _STEPS[0]]}, "one step with the role 'launch'"),
        ({"tool_ids": ["launch", "stop"]}, "work is not among `tool_ids`"),
        ({"steps": [{**_STEPS[0], "bindings": {"a": "$.b"}}, *_STEPS[1:]]}, "the launch has no bindings"),
    ],
)
def test_a_lifecycle_that_cannot_be_lived_is_refused(wrong: dict[str, JsonValue], said: str) -> None:
    assert said in (lifecycle_fault(group(**wrong)) or "")
    assert lifecycle_fault(group()) is None
    assert lifecycle_fault(group(lifecycle=False, steps=[])) is None


def test_a_binding_is_a_path_into_the_result() -> None:
    with pytest.raises(ValidationError, match="pattern"):
        group(steps=[{**_STEPS[1], "bindings": {"server_id": "server.id"}}])


def test_what_is_bound_cannot_be_changed_by_the_caller() -> None:
    opened = OpenSession(session_id="session-12345678", group=group())
    call = sessions.call_in(opened, group().steps[1], {"server": {"id": "s-1"}}, {"server_id": "s-2", "depth": 3})
    assert call.params == {"depth": 3, "server_id": "s-1"}
    with pytest.raises(NoSuchFieldError, match=r"no field '\$.server.id'"):
        sessions.call_in(opened, group().steps[1], {"server": "s-1"}, {})


def test_a_run_names_its_tool_where_several_could_be_meant() -> None:
    two = group(tool_ids=["launch", "work", "look", "stop"], steps=[*_STEPS, {"tool_id": "look", "role": "run"}])
    assert sessions.step_of(group(), SessionRun()).tool_id == sessions.step_of(two, SessionRun(tool_id="work")).tool_id == "work"
    for run, said in (
        (SessionRun(), "`tool_id` is missing; these do: work, look"),
        (SessionRun(tool_id="stop"), "'stop' does not run in it"),
    ):
        with pytest.raises(NoSuchStepError, match=said):
            sessions.step_of(two, run)


@pytest.mark.parametrize(
    ("ended", "made", "gone"),
    [
        (result(ErrorType.TIMEOUT, outcome="unknown"), True, False),
        (result(ErrorType.EXECUTION_ERROR, status_code=500), True, False),
        (result(ErrorType.EXECUTION_ERROR, status_code=404), True, True),
        (result(ErrorType.EXECUTION_ERROR, reason=sessions.GONE), True, True),
        (result(ErrorType.UNAVAILABLE, sent=False), False, False),
        (result(ErrorType.VALIDATION_ERROR), False, False),
        (result(ErrorType.PERMISSION_DENIED), False, False),
    ],
)
def test_what_an_answer_means_for_a_session(ended: ToolResult, made: bool, gone: bool) -> None:
    assert (sessions.was_made(ended), sessions.is_gone(ended)) == (made, gone)
    assert (sessions.over_by(group(), ended) is SessionEnd.FAILED_STEP) is made
    assert sessions.over_by(group(stop_after_failure=False), ended) is None


def test_a_session_says_when_it_ends_if_nobody_uses_it() -> None:
    limited = group(limits={"idle_timeout_s": 60, "total_timeout_s": 3600})
    ready = sessions.reckoned(limited, view(used_at=_AT), _AT)
    assert ready.ends_at == _AT + timedelta(seconds=60)
    assert sessions.reckoned(limited, ready.model_copy(update={"state": SessionState.STOPPING}), _AT).ends_at is None


def test_a_lost_launch_is_found_by_its_call() -> None:
    probe = VerifyProbe(tool_id="list", items="$.servers", launched_by="$.name")
    listed: JsonValue = {"servers": [{"name": "call-other"}, "odd", {"id": 3}, {"name": "call-mine", "server": {"id": "s-9"}}]}
    assert sessions.seen_in(probe, answered(listed), "call-mine") == {"name": "call-mine", "server": {"id": "s-9"}}
    assert sessions.seen_in(probe, answered(listed), "call-none") is False


@pytest.mark.parametrize(
    "said",
    [answered({"servers": "garbage"}), answered({"servers": None}), answered({"items": []}), answered(None), result(ErrorType.TIMEOUT)],
    ids=["text", "null", "another-field", "nothing", "no-answer"],
)
def test_an_answer_without_a_list_does_not_say_that_nothing_runs(said: ToolResult) -> None:
    probe = VerifyProbe(tool_id="list", items="$.servers", launched_by="$.name")
    launched = view(launched={"server": {"id": "s-9"}}, launch_call_id="call-mine-1234")
    assert sessions.seen_in(probe, said, "call-mine-1234") is None
    assert not sessions.is_unlisted(group(), probe, said, launched)


def test_a_probe_that_is_asked_for_one_launch_and_says_nothing_does_not_say_that_there_is_none() -> None:
    probe = VerifyProbe(tool_id="launch", asks="launched_by")
    assert sessions.seen_in(probe, answered(None), "call-12345678") is None
    assert sessions.seen_in(probe, result(ErrorType.EXECUTION_ERROR, cause="not_found"), "call-12345678") is False


@pytest.mark.parametrize(
    ("items", "unlisted"),
    [
        ([], True),
        ([{"name": "call-other-123", "server": {"id": "s-1"}}, "odd"], True),
        ([{"name": "call-mine-1234", "server": {"id": "s-2"}}], False),
        ([{"server": {"id": "s-9"}}], False),
    ],
    ids=["nothing", "others", "its-call", "its-server-without-the-call"],
)
def test_what_is_listed_under_its_call_or_its_name_is_not_gone(items: JsonValue, unlisted: bool) -> None:
    probe = VerifyProbe(tool_id="list", items="$.servers", launched_by="$.name")
    launched = view(launched={"server": {"id": "s-9"}, "price": 3}, launch_call_id="call-mine-1234")
    assert sessions.is_unlisted(group(), probe, answered({"servers": items}), launched) is unlisted


@pytest.mark.parametrize(
    ("items", "unlisted"),
    [
        ([], True),
        ([{"name": "call-other-123", "up_s": 9}], True),
        ([{"name": "call-other-123", "up_s": 9}, {"name": "call-mine-1234", "up_s": 9}], False),
        ([{"name": "call-mine-12", "up_s": 9}, {"up_s": 9}], False),
        ([{"name": sessions.call_id_in("session-12345678", "launch 1"), "up_s": 9}], False),
        ([{"name": "call-other-123", "up_s": 0}], False),
    ],
    ids=["nothing", "others", "its-call", "nobody-s", "its-earlier-launch", "what-it-launched"],
)
def test_what_a_stop_without_bindings_would_stop_is_not_gone_unless_it_is_of_others(items: JsonValue, unlisted: bool) -> None:
    """A provider's description of a launch changes, so its answer and its list entry may differ."""
    probe = VerifyProbe(tool_id="list", items="$.servers", launched_by="$.name")
    whole = group(steps=[*_STEPS[:2], {"tool_id": "stop", "role": "stop"}])
    launched = {"name": "call-other-123", "up_s": 0}
    ready = view(launched=launched, launch_call_id="call-mine-1234", session_id="session-12345678")
    assert sessions.is_unlisted(whole, probe, answered({"servers": items}), ready) is unlisted


def test_a_provider_may_list_a_launch_a_minute_late() -> None:
    assert sum(sessions.pause_of(looks).total_seconds() for looks in range(sessions.LOOKS - 1)) > 60


def test_a_session_ends_by_the_first_of_its_limits() -> None:
    used, launched = _AT + timedelta(seconds=50), _AT + timedelta(seconds=10)
    limits: dict[str, JsonValue] = {"idle_timeout_s": 30, "total_timeout_s": 100, "usd_per_hour": 36, "max_usd": 1}
    ready = view(used_at=used, launched_at=launched)
    assert sessions.end_at(group(limits=limits), ready, is_used=False) == (used + timedelta(seconds=30), SessionEnd.IDLE)
    assert sessions.end_at(group(limits=limits), ready, is_used=True) == (_AT + timedelta(seconds=100), SessionEnd.TOO_LONG)
    dear = group(limits={**limits, "usd_per_hour": 72})
    assert sessions.end_at(dear, ready, is_used=True) == (launched + timedelta(seconds=50), SessionEnd.BUDGET)
    assert sessions.end_at(group(limits={"idle_timeout_s": None, "total_timeout_s": None}), ready, is_used=False) is None
    assert sessions.cost_usd(dear, ready, launched + timedelta(seconds=50)) == 1.0
    assert sessions.cost_usd(dear, view(), _AT) == 0.0
    assert sessions.cost_usd(dear, view(launched_at=launched, cost_usd=0.5), launched - timedelta(hours=1)) == 0.5


def test_a_budget_that_no_session_reaches_is_no_end_that_cannot_be_a_date() -> None:
    for limits in ({"usd_per_hour": 2.5, "max_usd": 1e9}, {"usd_per_hour": 1e-300, "max_usd": 1e300}):
        end = sessions.end_at(group(limits={"total_timeout_s": None, **limits}), view(launched_at=_AT), is_used=True)
        assert end is not None
        assert (end[0] > _AT + timedelta(days=10_000), end[1]) == (True, SessionEnd.BUDGET)


def test_a_launch_is_asked_for_with_all_that_it_was_made_with() -> None:
    probe = VerifyProbe(tool_id="launch", params={"dry": True}, asks="launched_by")
    steps = [{**_STEPS[0], "params": {"size": 1, "hours": 2}}, *_STEPS[1:]]
    whole = group(steps=steps, verify=probe.model_dump())
    own = OpenSession(session_id="session-12345678", group=whole, params={"size": 3})
    made = sessions.call_in(own, whole.steps[0], None, own.params)
    asked: dict[str, JsonValue] = {"dry": True, "launched_by": "call-12345678"}
    assert sessions.looked_up(own, view(), probe, "call-12345678", ()).params == {**made.params, **asked}
    dated = probe.model_copy(update={"since": "after", "others": "not"})
    told = {"after": _AT.isoformat(), "not": ["other"]}
    assert sessions.looked_up(own, view(opened_at=_AT), dated, "call-12345678", ("other",)).params == {**made.params, **asked, **told}
    theirs = AdoptedCall(call=ToolCall(tool_id="launch", params={"size": 4}), call_id="call-12345678", workflow_id="w", run_id="r")
    adopting = OpenSession(session_id="session-12345678", group=whole, adopts=theirs)
    assert sessions.looked_up(adopting, view(), probe, "call-12345678", ()).params == {"size": 4, **asked}


def test_pauses_grow_and_operators_are_not_told_all_the_time() -> None:
    assert [sessions.pause_of(number).total_seconds() for number in (0, 1, 5, 20)] == [1, 2, 32, 300]
    assert [number for number in range(60) if sessions.is_alert(number)] == [3, 6, 12, 24, 48]


@pytest.mark.parametrize(
    ("details", "may"),
    [
        ({}, True),
        ({"status_code": 500}, True),
        ({"status_code": 408}, True),
        ({"status_code": 402}, False),
        ({"status_code": 429}, False),
        ({"sent": False}, False),
        ({"stopped": True}, False),
        ({"launched": False}, False),
        ({"status_code": 429, "sends": 2}, True),
        ({"stopped": True, "sends": 2}, True),
        ({"status_code": 401, "stopped": False, "outcome": "unknown"}, True),
        ({"stopped": True, "outcome": "unknown"}, False),
    ],
)
def test_a_launch_that_was_refused_launched_nothing(details: dict[str, JsonValue], may: bool) -> None:
    assert sessions.may_have_launched(result(ErrorType.EXECUTION_ERROR, **details)) is may


@pytest.mark.parametrize(
    ("ended", "may"),
    [
        (result(ErrorType.PERMISSION_DENIED), False),
        (result(ErrorType.BUDGET_EXCEEDED, status_code=402, stopped=False, outcome="unknown"), True),
        (result(ErrorType.SECURITY_ERROR, path="$.key_file", outcome="executed"), True),
        (result(ErrorType.SECURITY_ERROR, sent=False, outcome="unknown"), False),
        (answered({"server_id": "s-1"}), False),
    ],
)
def test_what_is_refused_after_the_launch_does_not_take_it_back(ended: ToolResult, may: bool) -> None:
    assert sessions.may_have_launched(ended) is may


def test_a_launch_that_does_not_say_what_the_stop_takes_cannot_be_stopped_by_its_answer() -> None:
    steps = [_STEPS[0], {"tool_id": "stop", "role": "stop", "bindings": {"server_id": "$.server_id"}}]
    whole = group(steps=steps, tool_ids=["launch", "stop"])
    good = succeeded("call-12345678", "launch", {"server_id": "s"}, _AT, execution_time=0.0, metadata={})
    assert sessions.can_stop(whole, good)
    assert not sessions.can_stop(whole, good.model_copy(update={"is_reference": True}))
    assert not sessions.can_stop(whole, good.model_copy(update={"result": {"id": "s"}}))
