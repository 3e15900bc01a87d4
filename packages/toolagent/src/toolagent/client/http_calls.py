"""Calls over HTTP, for a `ToolSubAgent` and the conformance suite."""

import asyncio
from datetime import UTC, datetime

from toolagent.client.http import Refused, ToolAgentHttp, UnexpectedAnswer, Unreachable
from toolagent.contracts.calls import CallMode, ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.http import TaskAccepted
from toolagent.core.calls.results import failed

__all__ = ["HttpCalls"]


class HttpCalls:
    """Each call waits in a thread. An unreachable or refusing service is a result too."""

    def __init__(self, service: ToolAgentHttp) -> None:
        self._service = service

    async def run(self, call: ToolCall) -> ToolResult:
        """Make a call and wait for its result."""
        call = call.model_copy(update={"mode": CallMode.SYNC})
        try:
            answer = await asyncio.to_thread(self._service.run, call)
        except Unreachable as error:
            details = ToolError(type=ErrorType.UNAVAILABLE, message=str(error), details={"sent": error.sent})
            return failed("", call.tool_id, details, datetime.now(UTC))
        except Refused as error:
            return failed("", call.tool_id, _error_of(error), datetime.now(UTC))
        except UnexpectedAnswer as error:
            # Whoever answered, a proxy perhaps: the call may have been made.
            details = ToolError(type=ErrorType.UNAVAILABLE, message=str(error), details={"outcome": "unknown"})
            return failed("", call.tool_id, details, datetime.now(UTC))
        if isinstance(answer, TaskAccepted):
            # Only an older service turns a call that is waited for into a task; its id is what can be gone on with.
            message = f"The service did not wait for the end; the call goes on as task {answer.task_id}."
            error = ToolError(type=ErrorType.UNAVAILABLE, message=message)
            return failed(answer.task_id, call.tool_id, error, datetime.now(UTC))
        return answer


def _error_of(error: Refused) -> ToolError:
    known = {member.value: member for member in ErrorType}
    return ToolError(type=known.get(error.problem.type, ErrorType.REJECTED), message=str(error), details=error.problem.details)
