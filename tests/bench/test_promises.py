"""Chaos finds broken promises, and repeats itself with the same seed."""

from bench.chaos.callers import Asked
from bench.chaos.plan import SERVICE, PlannedCall, plan_calls, plan_kills
from bench.chaos.truth import Fate, broken_promises, useless_tools
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult

_SUCCESS = ToolResult(status="success", result={"message": "hello"})
_UNKNOWN = ToolResult(
    status="error",
    error_type=ErrorType.EXECUTION_ERROR,
    error=ToolError(type=ErrorType.EXECUTION_ERROR, message="?", details={"outcome": "unknown"}),
)


def _broken(kind: str, told: ToolResult | None, result: ToolResult | None, repeated: ToolResult | None, effects: int) -> list[str]:
    """The broken promises, without the call's id and kind."""
    asked = Asked(PlannedCall("key", kind, waits=True, twins=1), accepted=True, results=[told] if told else [])
    return [fault.split(") ", 1)[1] for fault in broken_promises(Fate(asked, result, repeated, effects))]


def test_one_result_and_one_effect_is_what_was_promised() -> None:
    assert _broken("acts once", _SUCCESS, _SUCCESS, _SUCCESS, 1) == []


def test_a_lost_call_is_found() -> None:
    assert _broken("fast builtin", None, None, None, 0) == ["was accepted and has no result"]


def test_two_effects_of_what_may_act_once_are_found() -> None:
    assert _broken("acts once", _SUCCESS, _SUCCESS, _SUCCESS, 2) == ["had its effect 2 times"]
    assert _broken("idempotent", _SUCCESS, _SUCCESS, _SUCCESS, 2) == []


def test_a_success_without_its_effect_is_found() -> None:
    assert _broken("idempotent", _SUCCESS, _SUCCESS, _SUCCESS, 0) == ["succeeded without an effect"]


def test_an_unknown_outcome_may_have_had_its_effect_or_not() -> None:
    assert _broken("acts once", None, _UNKNOWN, _UNKNOWN, 0) == _broken("acts once", None, _UNKNOWN, _UNKNOWN, 1) == []


def test_a_caller_who_was_told_something_else_is_found() -> None:
    assert _broken("fast builtin", _SUCCESS, _UNKNOWN, _UNKNOWN, 0) == ["has 2 different results"]
    assert _broken("fast builtin", _SUCCESS, _SUCCESS, _UNKNOWN, 0) == ["has 2 different results"]


def _fate(kind: str, result: ToolResult, *, cancels: int = 0) -> Fate:
    return Fate(Asked(PlannedCall("key", kind, waits=True, twins=1), accepted=True, cancels=cancels), result, result, effects=0)


def test_a_tool_of_which_nothing_is_seen_but_failures_is_found() -> None:
    bad = [_fate("idempotent", _UNKNOWN), _fate("idempotent, slow", _UNKNOWN)]
    assert useless_tools([*bad, _fate("acts once", _SUCCESS), _fate("acts once", _UNKNOWN)]) == ["bench_again never succeeded in 2 calls"]


def test_a_tool_whose_calls_were_all_to_be_cancelled_is_not_held_against_us() -> None:
    assert useless_tools([_fate("idempotent", _UNKNOWN, cancels=1)]) == []


def test_a_seed_gives_the_same_calls_and_kills_again_and_another_seed_gives_others() -> None:
    assert (plan_calls(1, 100), plan_kills(1, 20)) == (plan_calls(1, 100), plan_kills(1, 20))
    assert plan_calls(1, 100) != plan_calls(2, 100)
    assert plan_kills(1, 20) != plan_kills(2, 20)


def test_everybody_is_killed_early_on() -> None:
    assert {kill.victim for kill in plan_kills(5, len(SERVICE))} == set(SERVICE)
