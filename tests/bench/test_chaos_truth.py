"""The violations that chaos reports, given the end of a call and its effects."""

from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from bench.chaos.callers import Asked
from bench.chaos.plan import KINDS, Door, plan_calls
from bench.chaos.truth import Fate, broken_promises
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent.core.calls.results import failed, succeeded

_AT = datetime(2026, 1, 1, tzinfo=UTC)
_CALLS = plan_calls(1, 1000)


def _asked(kind: str, **seen: bool | int) -> Asked:
    asked = Asked(next(call for call in _CALLS if call.kind == kind), accepted=True)
    for name, value in seen.items():
        setattr(asked, name, value)
    return asked


def _success() -> ToolResult:
    return succeeded("call-1", "bench_acting", {}, _AT, execution_time=0.1, metadata={})


def _error(error_type: ErrorType, details: JsonValue = None) -> ToolResult:
    return failed("call-1", "bench_acting", ToolError(type=error_type, message="It did not work.", details=details), _AT)


def test_a_call_that_succeeded_with_one_effect_keeps_every_promise() -> None:
    assert broken_promises(Fate(_asked("acts once"), _success(), _success(), effects=1)) == []


def test_a_call_that_was_cancelled_before_it_was_sent_keeps_every_promise() -> None:
    result = _error(ErrorType.CANCELLED, {"sent": False})
    fate = Fate(_asked("acts once", cancels=1, is_cancelled=True), result, result, effects=0)
    assert fate.is_said_unsent
    assert broken_promises(fate) == []


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS.values() if kind.acts])
def test_an_effect_of_a_call_that_was_said_not_to_have_been_sent_is_held_against_us(kind: str) -> None:
    result = _error(ErrorType.UNAVAILABLE, {"sent": False})
    assert len(broken_promises(Fate(_asked(kind), result, result, effects=1))) == 1


def test_it_is_held_against_us_also_when_only_one_caller_was_told_so() -> None:
    asked = _asked("acts once")
    asked.results.append(_error(ErrorType.UNAVAILABLE, {"sent": False}))
    faults = broken_promises(Fate(asked, _success(), _success(), effects=1))
    assert len(faults) == 2  # two different results, and the effect


def test_an_effect_of_a_call_whose_outcome_is_unknown_is_not_held_against_us() -> None:
    result = _error(ErrorType.EXECUTION_ERROR, {"sent": True, "outcome": "unknown"})
    assert broken_promises(Fate(_asked("acts once"), result, result, effects=1)) == []


def test_a_cancelled_call_that_nobody_asked_to_cancel_is_held_against_us() -> None:
    result = _error(ErrorType.CANCELLED)
    assert len(broken_promises(Fate(_asked("fast builtin"), result, result, effects=0))) == 1


def test_a_cancelled_call_without_a_result_is_held_against_us() -> None:
    assert len(broken_promises(Fate(_asked("acts once", cancels=1, is_cancelled=True), None, None, effects=0))) == 1


def test_a_plan_repeats_by_its_seed_and_uses_both_doors_and_cancels_some() -> None:
    assert plan_calls(1, 1000) == _CALLS
    assert plan_calls(2, 1000) != _CALLS
    assert {call.door for call in _CALLS} == set(Door)
    assert 50 < sum(call.cancel_after_s is not None for call in _CALLS) < 250
