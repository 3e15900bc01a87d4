"""Whose fault the error of a call is, as far as a repair of the tool could help."""

from collections.abc import Mapping

from pydantic import JsonValue

from toolagent.contracts.calls import ErrorType, ToolError

BLAMED = (ErrorType.EXECUTION_ERROR, ErrorType.OUTPUT_VALIDATION_ERROR, ErrorType.DEPENDENCY_ERROR, ErrorType.UNAVAILABLE)
"""Types of errors among which are a tool's own faults."""

_OF_THE_SERVICE = frozenset({"attempts", "lost_attempts", "cause"})
"""In details of an `execution_error`: a step of ours failed, or what the tool made could not be kept."""

_STEPS = ("step_lost", "step_faulty")
"""`reason` in details of a call that a step of ours could not bring to its end."""

_OF_CIRCUMSTANCES = (409, 410, 423, 425, 429, 502, 504)
"""`status_code` of answers that say how things are: in conflict, gone, locked, too many, or that a server of others failed."""

_OF_THE_OPERATOR = frozenset({"secret", "dependencies", "content", "missing"})
"""In details of a tool that cannot start: something else than its files is not there."""

_WHILE_STARTING = frozenset({"exit_code", "last_answer", "ended", "stderr"})
"""In details of a tool that was started and did not come up."""


def is_own_fault(error: ToolError) -> bool:
    """Whether the tool's files may be to blame. Not for a caller's mistake, an outage, a limit, or a fault of the service."""
    details = _details(error)
    match error.type:
        case ErrorType.OUTPUT_VALIDATION_ERROR:
            return True
        case ErrorType.EXECUTION_ERROR:
            others = details.keys() & _OF_THE_SERVICE or _is_our_end(details) or details.get("status_code") in _OF_CIRCUMSTANCES
            return process_end(error) is not None or not others
        case ErrorType.DEPENDENCY_ERROR:
            return not details.keys() & _OF_THE_OPERATOR
        case ErrorType.UNAVAILABLE:
            return bool(details.keys() & _WHILE_STARTING) and not details.keys() & _OF_THE_OPERATOR
        case _:
            return False


def process_end(error: ToolError) -> str | None:
    """How the tool's process ended during the call, by itself; None when it did not."""
    told = _details(error).get("tool_ended")
    return told if isinstance(told, str) and told else None


def was_alone(error: ToolError) -> bool:
    """Whether no other call was in the process that has ended."""
    return not _details(error).get("other_calls")


def _is_our_end(details: Mapping[str, JsonValue]) -> bool:
    """A step of ours failed, the worker died, or the tool was stopped: nobody knows what the tool would have answered."""
    if details.get("reason") in _STEPS:
        return True
    return details.get("outcome") == "unknown" and ("sent" in details or "tool_ended" in details)


def _details(error: ToolError) -> Mapping[str, JsonValue]:
    return error.details if isinstance(error.details, dict) else {}
