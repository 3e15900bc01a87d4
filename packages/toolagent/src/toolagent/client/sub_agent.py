"""A helper that calls tools for an agent and keeps statistics."""

import asyncio
import inspect
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol, Self

from pydantic import JsonValue, ValidationError

from toolagent.client.failures import ToolAgentError
from toolagent.contracts.calls import Caller, ErrorType, ToolCall, ToolError, ToolResult, ValidationIssue

__all__ = ["BriefSummary", "CallDetail", "ExecutionSummary", "OnResult", "RunsCalls", "ToolSubAgent"]

_AT_ONCE = 16
_log = logging.getLogger(__name__)

OnResult = Callable[[ToolResult], Awaitable[None] | None]
"""Gets each result. May be a coroutine function."""


class RunsCalls(Protocol):
    """Makes calls: `ToolAgentClient`, `HttpCalls` over HTTP, or `ChildCalls` inside a workflow."""

    async def run(self, call: ToolCall) -> ToolResult: ...


@dataclass(frozen=True, slots=True)
class CallDetail:
    """One call in the summary. Times are in seconds."""

    call_id: str
    tool_name: str
    status: str
    error_type: str | None
    execution_time: float
    executed_at: str
    callback_error: str | None


ExecutionSummary = dict[str, JsonValue]
"""`agent_id`, `total_calls`, `successful_calls`, `success_rate` (percent), `tool_usage`, `call_details`."""

BriefSummary = dict[str, JsonValue]
"""`total_calls`, `success_rate` (percent), `tool_usage`, `has_errors`."""


class ToolSubAgent:
    """Calls tools in the name of one agent and records the outcomes.

    Errors of a call are in its result. It has no connection and no clock, so it can be used in a workflow.
    """

    def __init__(
        self,
        agent_id: str,
        calls: RunsCalls,
        *,
        parent_agent_id: str | None = None,
        caller: Caller | None = None,
        on_result_callback: OnResult | None = None,
    ) -> None:
        """`caller` is the caller of the calls; by default the parent, or else the sub-agent itself."""
        kind = "conversation_agent" if parent_agent_id else "direct"
        self.agent_id = agent_id
        self._calls = calls
        self._caller = caller or Caller(caller_id=parent_agent_id or agent_id, caller_type=kind)
        self._on_result = on_result_callback
        self._details: list[CallDetail] = []

    @classmethod
    def for_conversation(
        cls, agent_id: str, calls: RunsCalls, parent_agent_id: str, conversation_id: str, on_result_callback: OnResult | None = None
    ) -> Self:
        """Calls are recorded under the conversation."""
        caller = Caller.for_conversation(parent_agent_id, conversation_id)
        return cls(agent_id, calls, parent_agent_id=parent_agent_id, caller=caller, on_result_callback=on_result_callback)

    @classmethod
    def for_workflow(
        cls, agent_id: str, calls: RunsCalls, workflow_id: str, node_id: str, on_result_callback: OnResult | None = None
    ) -> Self:
        """Calls are recorded under the node of a workflow."""
        return cls(agent_id, calls, caller=Caller.for_workflow(workflow_id, node_id), on_result_callback=on_result_callback)

    async def execute(self, tool_name: str, params: dict[str, JsonValue] | None = None, timeout: float | None = None) -> ToolResult:
        """Call a tool; `timeout` is in seconds.

        An invalid call is a `validation_error` too. It was never made, so it has no `call_id`, and `executed_at` is the epoch.
        """
        result = await self._result(tool_name, params or {}, timeout)
        self._details.append(_detail(tool_name, result, await self._told(result)))
        return result

    async def execute_batch(
        self, calls: Sequence[tuple[str, dict[str, JsonValue]]], *, ordered: bool = False, timeout: float | None = None
    ) -> list[ToolResult]:
        """Results in the order of the calls. At most 16 run at a time, or one after the other; a failure stops no other call.

        Raises other errors than `ToolAgentError` of the connection once all calls have ended.
        """
        places = asyncio.Semaphore(1 if ordered else _AT_ONCE)

        async def one(tool_name: str, params: dict[str, JsonValue]) -> ToolResult:
            async with places:
                return await self.execute(tool_name, params, timeout)

        ended = await asyncio.gather(*(one(tool_name, params) for tool_name, params in calls), return_exceptions=True)
        return [_given(result) for result in ended]

    def get_execution_summary(self) -> ExecutionSummary:
        """All calls, in the order in which they ended."""
        return {
            "agent_id": self.agent_id,
            "total_calls": len(self._details),
            "successful_calls": self._successes(),
            "success_rate": self._rate(),
            "tool_usage": self._usage(),
            "call_details": [*map(asdict, self._details)],
        }

    def get_brief_summary(self) -> BriefSummary:
        """A short summary for a user interface."""
        return {
            "total_calls": len(self._details),
            "success_rate": self._rate(),
            "tool_usage": self._usage(),
            "has_errors": self._successes() < len(self._details),
        }

    async def _result(self, tool_name: str, params: dict[str, JsonValue], timeout: float | None) -> ToolResult:
        try:
            call = ToolCall(tool_id=tool_name, params=params, timeout_s=timeout, caller=self._caller)
        except ValidationError as error:
            return _no_call(tool_name, error)
        try:
            return await self._calls.run(call)
        except ToolAgentError as error:
            return error.result

    async def _told(self, result: ToolResult) -> str | None:
        """The error of the callback; the result is kept."""
        if self._on_result is None:
            return None
        (failure,) = await asyncio.gather(_called_back(self._on_result, result), return_exceptions=True)
        if failure is None:
            return None
        _log.error("on_result_callback of %s failed for %s", self.agent_id, result.call_id, exc_info=failure)
        return f"{type(failure).__name__}: {failure}"

    def _successes(self) -> int:
        return sum(detail.status == "success" for detail in self._details)

    def _rate(self) -> float:
        """In percent; 100 without calls."""
        return round(100 * self._successes() / len(self._details), 2) if self._details else 100.0

    def _usage(self) -> dict[str, JsonValue]:
        return dict(Counter(detail.tool_name for detail in self._details))


async def _called_back(callback: OnResult, result: ToolResult) -> None:
    answer = callback(result)
    if inspect.isawaitable(answer):
        await answer


def _given(ended: ToolResult | BaseException) -> ToolResult:
    if isinstance(ended, BaseException):
        raise ended
    return ended


def _no_call(tool_name: str, error: ValidationError) -> ToolResult:
    issues = tuple(
        ValidationIssue(path="$" + "".join(f".{part}" for part in issue["loc"]), message=issue["msg"], keyword=issue["type"])
        for issue in error.errors(include_url=False, include_input=False)
    )
    message = "This is no call: " + "; ".join(f"{issue.path}: {issue.message}" for issue in issues[:5])
    wrong = ToolError(type=ErrorType.VALIDATION_ERROR, message=message, details={"sent": False})
    return ToolResult(status="error", error=wrong, error_type=wrong.type, validation_errors=issues, tool_id=tool_name)


def _detail(tool_name: str, result: ToolResult, callback_error: str | None) -> CallDetail:
    return CallDetail(
        call_id=result.call_id,
        tool_name=tool_name,
        status=result.status,
        error_type=result.error_type.value if result.error_type else None,
        execution_time=result.execution_time,
        executed_at=result.executed_at.isoformat(),
        callback_error=callback_error,
    )
