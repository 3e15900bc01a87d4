"""Batches: many calls as one durable job."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from toolagent.contracts.callbacks import CallbackUrl
from toolagent.contracts.calls import Caller, CallMode, ErrorType, IdempotencyKey, ToolCall, ToolError, ToolResult
from toolagent.contracts.contract import Contract

__all__ = [
    "BATCH_ID_PATTERN",
    "MAX_BATCH_CALLS",
    "BatchEnd",
    "BatchResult",
    "BatchedCall",
    "BatchedState",
    "CallLook",
    "LookRequest",
    "LookState",
    "ToolBatch",
]

BATCH_ID_PATTERN = r"^batch-[A-Za-z0-9_-]{8,64}$"
MAX_BATCH_CALLS = 100


class ToolBatch(Contract):
    """The input of `RunTools`. The `mode` of single calls is ignored."""

    calls: Annotated[tuple[ToolCall, ...], Field(min_length=1, max_length=MAX_BATCH_CALLS)]
    ordered: bool = False
    """Make the calls one after the other, in this order; otherwise in parallel."""
    stop_on_error: bool = False
    """After a failure, start no further call. Those end as `cancelled`, with the reason `skipped`."""
    mode: CallMode = CallMode.SYNC
    idempotency_key: IdempotencyKey | None = None
    caller: Caller = Caller()
    """Owns the key, and is the caller of every call without one."""
    callback_url: CallbackUrl | None = None
    """URL to which ids and states are posted when all calls have ended."""


class BatchedState(StrEnum):
    """The state of one call of a batch. `skipped`: it was never started, because the batch stopped before."""

    WAITING = "waiting"
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


class BatchedCall(Contract):
    """One call of a batch, without its output, which `/tasks/{call_id}` has. `reason` refines `error_type`."""

    call_id: str
    tool_id: str
    state: BatchedState = BatchedState.WAITING
    error_type: ErrorType | None = None
    reason: str | None = None


class BatchEnd(Contract):
    """The result of `RunTools`: ids and states, because a hundred outputs do not fit into one message of Temporal.

    `error` is set if the batch has no regular end. Either the input was not valid (then there are no calls), or it was ended from outside
    (then the calls are as last known, and end by themselves; there are none if no worker answered).
    """

    batch_id: str
    calls: tuple[BatchedCall, ...] = ()
    cancelled: bool = False
    error: ToolError | None = None


class BatchResult(Contract):
    """How a batch ended: one result for each call, in the order of the calls."""

    batch_id: str
    total: int
    succeeded: int
    failed: int
    """Also those that were cancelled or skipped."""
    cancelled: bool = False
    """The batch itself was cancelled."""
    results: tuple[ToolResult, ...]


class LookRequest(Contract):
    """Asks for a call that may have been started elsewhere under the same id. `waits`: wait while it runs."""

    call: ToolCall
    call_id: str
    waits: bool = False


class LookState(StrEnum):
    """`free`: the call can be started, because the holder of the id was refused or forgotten. `conflict`: another call has the id."""

    FREE = "free"
    RUNNING = "running"
    ENDED = "ended"
    CONFLICT = "conflict"


class CallLook(Contract):
    """The state of the call. An ended call comes without its output."""

    state: LookState
    status: str = ""
    error_type: ErrorType | None = None
    reason: str | None = None
