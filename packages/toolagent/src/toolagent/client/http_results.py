"""Calls over HTTP whose errors are results too."""

from collections.abc import Callable
from datetime import UTC, datetime

from toolagent.client.http_answers import Refused, UnexpectedAnswer, Unreachable
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent.contracts.http import TaskAccepted
from toolagent.core.calls.results import failed

__all__ = ["result_of"]


def result_of(ask: Callable[[], ToolResult | TaskAccepted], tool_id: str) -> ToolResult:
    """The result of a synchronous call. An error of the service or the connection is a result too."""
    try:
        answer = ask()
    except Unreachable as error:
        wrong = ToolError(type=ErrorType.UNAVAILABLE, message=str(error), details={"sent": error.sent})
    except Refused as error:
        kind = error.problem.type
        wrong = ToolError(
            type=ErrorType(kind) if kind in set(ErrorType) else ErrorType.REJECTED, message=str(error), details=error.problem.details
        )
    except UnexpectedAnswer as error:
        # A proxy may have answered: the call may have been made.
        wrong = ToolError(type=ErrorType.UNAVAILABLE, message=str(error), details={"outcome": "unknown"})
    else:
        if isinstance(answer, ToolResult):
            return answer
        # Only an older service turns a synchronous call into a task. Its id allows to go on.
        message = f"The service did not wait for the end; the call goes on as task {answer.task_id}."
        return failed(answer.task_id, tool_id, ToolError(type=ErrorType.UNAVAILABLE, message=message), datetime.now(UTC))
    return failed("", tool_id, wrong, datetime.now(UTC))
