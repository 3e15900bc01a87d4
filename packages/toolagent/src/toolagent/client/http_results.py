"""Calls over HTTP whose every end is a result."""

from collections.abc import Callable
from datetime import UTC, datetime

from toolagent.client.http_answers import Refused, UnexpectedAnswer, Unreachable
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent.contracts.http import TaskAccepted
from toolagent.core.calls.results import failed

__all__ = ["result_of"]


def result_of(ask: Callable[[], ToolResult | TaskAccepted], tool_id: str) -> ToolResult:
    """What the service answers to a call of mode `sync`. An unreachable or refusing service is a result too."""
    try:
        answer = ask()
    except Unreachable as error:
        details = ToolError(type=ErrorType.UNAVAILABLE, message=str(error), details={"sent": error.sent})
        return failed("", tool_id, details, datetime.now(UTC))
    except Refused as error:
        return failed("", tool_id, _error_of(error), datetime.now(UTC))
    except UnexpectedAnswer as error:
        # Whoever answered, a proxy perhaps: the call may have been made.
        details = ToolError(type=ErrorType.UNAVAILABLE, message=str(error), details={"outcome": "unknown"})
        return failed("", tool_id, details, datetime.now(UTC))
    if isinstance(answer, TaskAccepted):
        # Only an older service turns a call that is waited for into a task; its id is what can be gone on with.
        message = f"The service did not wait for the end; the call goes on as task {answer.task_id}."
        error = ToolError(type=ErrorType.UNAVAILABLE, message=message)
        return failed(answer.task_id, tool_id, error, datetime.now(UTC))
    return answer


def _error_of(error: Refused) -> ToolError:
    known = {member.value: member for member in ErrorType}
    return ToolError(type=known.get(error.problem.type, ErrorType.REJECTED), message=str(error), details=error.problem.details)
