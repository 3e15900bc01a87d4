"""Whether the tool itself is to blame for the error of a call, so that a repair could help."""

from collections.abc import Mapping

from pydantic import JsonValue

from toolagent.contracts.calls import ErrorType, ToolError

BLAMED = (ErrorType.EXECUTION_ERROR, ErrorType.OUTPUT_VALIDATION_ERROR, ErrorType.DEPENDENCY_ERROR, ErrorType.UNAVAILABLE)
"""Types of errors that may be the tool's fault."""

_OF_THE_SERVICE = frozenset({"attempts", "lost_attempts", "cause"})
"""Keys in details of an `execution_error` if a step of the service failed, or the output could not be stored."""

_STEPS = ("step_lost", "step_faulty")
"""Values of `reason` in details if a step of the service failed."""

_OF_CIRCUMSTANCES = (409, 410, 423, 425, 429, 502, 504)
"""Values of `status_code` that depend on circumstances: conflict, gone, locked, too many requests, or a failed upstream server."""

_OF_THE_OPERATOR = frozenset({"secret", "dependencies", "content", "missing"})
"""Keys in details of a tool that cannot start because something other than its files is missing."""

_WHILE_STARTING = frozenset({"exit_code", "last_answer", "ended", "stderr"})
"""Keys in details of a tool that was started but did not come up."""


def is_own_fault(error: ToolError) -> bool:
    """Whether the tool's files may be to blame, not the caller, an outage, a limit, or the service."""
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
    """How the tool's process ended by itself during the call; None if it did not."""
    told = _details(error).get("tool_ended")
    return told if isinstance(told, str) and told else None


def was_alone(error: ToolError) -> bool:
    """Whether no other call was in the process when it ended."""
    return not _details(error).get("other_calls")


def _is_our_end(details: Mapping[str, JsonValue]) -> bool:
    """Whether a step of the service failed, the worker died, or the tool was stopped, so that the tool's answer is unknown."""
    if details.get("reason") in (*_STEPS, "stopped"):
        return True
    return details.get("outcome") == "unknown" and ("sent" in details or "tool_ended" in details)


def _details(error: ToolError) -> Mapping[str, JsonValue]:
    return error.details if isinstance(error.details, dict) else {}
