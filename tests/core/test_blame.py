"""Which part a failed call is attributed to."""

import pytest
from pydantic import JsonValue

from engine.calls.endings import faulty_step, lost_step
from toolagent.contracts.calls import ErrorType, ToolError
from toolagent_service.calls.blame import is_own_fault, process_end

_OWN = (ErrorType.EXECUTION_ERROR, ErrorType.OUTPUT_VALIDATION_ERROR, ErrorType.DEPENDENCY_ERROR)


@pytest.mark.parametrize("kind", ErrorType)
def test_without_more_only_what_the_tool_did_is_its_fault(kind: ErrorType) -> None:
    assert is_own_fault(ToolError(type=kind, message="It failed.")) is (kind in _OWN)


@pytest.mark.parametrize(
    ("kind", "details", "is_its_own"),
    [
        (ErrorType.EXECUTION_ERROR, {"outcome": "unknown", "tool_ended": "It ended with code 3."}, True),
        (ErrorType.EXECUTION_ERROR, {"outcome": "unknown", "tool_ended": None}, False),  # it was stopped
        (ErrorType.EXECUTION_ERROR, {"outcome": "unknown", "reason": "stopped"}, False),
        (ErrorType.EXECUTION_ERROR, {"outcome": "unknown", "sent": True}, False),  # the worker died
        (ErrorType.EXECUTION_ERROR, {"attempts": 3}, False),
        (ErrorType.EXECUTION_ERROR, {"cause": "store_unavailable", "outcome": "executed"}, False),
        (ErrorType.DEPENDENCY_ERROR, {"secret": "KEY"}, False),
        (ErrorType.DEPENDENCY_ERROR, {"dependencies": []}, False),
        (ErrorType.UNAVAILABLE, {"exit_code": 1, "stderr": "SyntaxError"}, True),
        (ErrorType.UNAVAILABLE, {"exit_code": 1, "missing": "sandbox"}, False),
        (ErrorType.UNAVAILABLE, {"last_answer": "503"}, True),
        (ErrorType.UNAVAILABLE, {"reason": "under_repair"}, False),
        (ErrorType.UNAVAILABLE, {"reason": "no_slot"}, False),
        (ErrorType.TIMEOUT, {"outcome": "unknown"}, False),
        (ErrorType.EXECUTION_ERROR, {"status_code": 500}, True),
        (ErrorType.EXECUTION_ERROR, {"status_code": 429}, False),
        (ErrorType.EXECUTION_ERROR, {"status_code": 504}, False),
        (ErrorType.EXECUTION_ERROR, {"status_code": [429]}, True),
    ],
)
def test_the_details_tell(kind: ErrorType, details: dict[str, JsonValue], is_its_own: bool) -> None:
    assert is_own_fault(ToolError(type=kind, message="", details=details)) is is_its_own


def test_faults_of_our_own_steps_are_not_the_tools() -> None:
    assert not is_own_fault(lost_step("Settling", 3, "unknown"))
    assert not is_own_fault(faulty_step(3, "KeyError", "unknown"))


def test_a_process_that_ended_by_itself_says_how() -> None:
    told = ToolError(type=ErrorType.EXECUTION_ERROR, message="", details={"tool_ended": "It ended with code 3."})
    assert process_end(told) == "It ended with code 3."
    assert process_end(told.model_copy(update={"details": {"tool_ended": None}})) is None
    assert process_end(told.model_copy(update={"details": ["tool_ended"]})) is None
