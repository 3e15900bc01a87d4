"""Handles of a started call or batch: its id, and methods to follow it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from toolagent.contracts.batches import BatchResult
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.tasks import TaskView

__all__ = ["BatchHandle", "CallHandle", "FollowedCalls"]


class FollowedCalls(Protocol):
    """Follows calls by their id; implemented by `ToolAgentClient`."""

    async def result(self, call_id: str, tool_id: str = "") -> ToolResult: ...
    async def task(self, call_id: str, workflow_id: str | None = None) -> TaskView | None: ...
    async def cancel(self, call_id: str, workflow_id: str | None = None) -> bool: ...


@dataclass(frozen=True, slots=True)
class CallHandle:
    """A started call. Keep only its id: `ToolAgentClient.handle(call_id)` returns the handle again."""

    call_id: str
    tool_id: str = ""
    calls: FollowedCalls = field(repr=False, compare=False, kw_only=True)

    async def result(self) -> ToolResult:
        """Wait for the end. Raises AnswerPendingError."""
        return await self.calls.result(self.call_id, self.tool_id)

    async def task(self) -> TaskView | None:
        """State of the call; None when Temporal does not know it (any more). Raises AnswerPendingError."""
        return await self.calls.task(self.call_id)

    async def cancel(self) -> bool:
        """Cancel the call; False when Temporal does not know it. Raises AnswerPendingError."""
        return await self.calls.cancel(self.call_id)


@dataclass(frozen=True, slots=True)
class BatchHandle:
    """A started batch."""

    batch_id: str
    wait: Callable[[str], Awaitable[BatchResult]] = field(repr=False, compare=False, kw_only=True)
    look: Callable[[str], Awaitable[TaskView | None]] = field(repr=False, compare=False, kw_only=True)
    stop: Callable[[str], Awaitable[bool]] = field(repr=False, compare=False, kw_only=True)

    async def result(self) -> BatchResult:
        """Wait for the end of all calls. Raises AnswerPendingError."""
        return await self.wait(self.batch_id)

    async def task(self) -> TaskView | None:
        """State of the batch and its calls. Raises AnswerPendingError."""
        return await self.look(self.batch_id)

    async def cancel(self) -> bool:
        """Cancel the batch and its running calls. Raises AnswerPendingError."""
        return await self.stop(self.batch_id)
