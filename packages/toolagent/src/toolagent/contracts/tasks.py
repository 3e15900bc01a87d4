"""Tasks: long jobs that can be followed by their id."""

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
    """The state of a task. `result` is set once it has ended."""

    task_id: str
    status: TaskState
    tool_id: str | None = None
    progress: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    result: ToolResult | None = None
    calls: tuple[BatchedCall, ...] = ()
    """The calls of a batch. `/tasks/{call_id}` has the result of each."""
    callback: CallbackView | None = None
    """The state of the callback, if there is a `callback_url`."""
