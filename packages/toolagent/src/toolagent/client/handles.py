"""What a caller holds of a call or a batch that was handed over: an id, and the ways to ask after it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from toolagent.contracts.batches import BatchResult
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.tasks import TaskView

__all__ = ["BatchHandle", "CallHandle", "FollowedCalls"]


class FollowedCalls(Protocol):
    """Whoever can follow calls by their id; `ToolAgentClient` is one."""

    async def result(self, call_id: str, tool_id: str = "") -> ToolResult: ...
    async def task(self, call_id: str, workflow_id: str | None = None) -> TaskView | None: ...
    async def cancel(self, call_id: str, workflow_id: str | None = None) -> bool: ...


@dataclass(frozen=True, slots=True)
class CallHandle:
    """A call that was handed over. Its id is all that needs to be kept: `ToolAgentClient.handle(call_id)` gives this again."""

    call_id: str
    tool_id: str = ""
    calls: FollowedCalls = field(repr=False, compare=False, kw_only=True)

    async def result(self) -> ToolResult:
        """Wait for the end. Raises AnswerPendingError."""
        return await self.calls.result(self.call_id, self.tool_id)

    async def task(self) -> TaskView | None:
        """How far it is; None when Temporal does not know it (any more). Raises AnswerPendingError."""
        return await self.calls.task(self.call_id)

    async def cancel(self) -> bool:
        """Ask it to end; False when Temporal does not know it. Raises AnswerPendingError."""
        return await self.calls.cancel(self.call_id)


@dataclass(frozen=True, slots=True)
class BatchHandle:
    """A batch that was handed over."""

    batch_id: str
    wait: Callable[[str], Awaitable[BatchResult]] = field(repr=False, compare=False, kw_only=True)
    look: Callable[[str], Awaitable[TaskView | None]] = field(repr=False, compare=False, kw_only=True)
    stop: Callable[[str], Awaitable[bool]] = field(repr=False, compare=False, kw_only=True)

    async def result(self) -> BatchResult:
        """Wait for the end of all calls. Raises AnswerPendingError."""
        return await self.wait(self.batch_id)

    async def task(self) -> TaskView | None:
        """How far it is, with its calls. Raises AnswerPendingError."""
        return await self.look(self.batch_id)

    async def cancel(self) -> bool:
        """Ask the batch and its running calls to end. Raises AnswerPendingError."""
        return await self.stop(self.batch_id)
