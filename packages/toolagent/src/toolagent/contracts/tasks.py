"""A long job with an id that a person can follow."""

from datetime import datetime
from enum import StrEnum

from toolagent.contracts.batches import BatchedCall
from toolagent.contracts.callbacks import CallbackView
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.contract import Contract

__all__ = ["TaskState", "TaskView"]


class TaskState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TaskView(Contract):
    """How far a task is. `result` is there once it has ended."""

    task_id: str
    status: TaskState
    tool_id: str | None = None
    progress: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    result: ToolResult | None = None
    calls: tuple[BatchedCall, ...] = ()
    """Of a batch: its calls; `/tasks/{call_id}` has the result of each."""
    callback: CallbackView | None = None
    """Where a `callback_url` was given: how far the delivery is."""
