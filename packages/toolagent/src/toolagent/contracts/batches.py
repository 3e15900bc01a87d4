"""Many calls as one durable thing, and how each of them ended."""

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
    """What `RunTools` takes. The `mode` of a single call means nothing here."""

    calls: Annotated[tuple[ToolCall, ...], Field(min_length=1, max_length=MAX_BATCH_CALLS)]
    ordered: bool = False
    """One after the other, in this order; else in parallel."""
    stop_on_error: bool = False
    """After a failure no further call is begun; those are `cancelled`, `skipped`."""
    mode: CallMode = CallMode.SYNC
    idempotency_key: IdempotencyKey | None = None
    caller: Caller = Caller()
    """Owns the key, and is the caller of every call that names none."""
    callback_url: CallbackUrl | None = None
    """Where ids and states are posted when all calls have ended."""


class BatchedState(StrEnum):
    """Where one call of a batch is. `skipped`: it was never begun, because the batch stopped before."""

    WAITING = "waiting"
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


class BatchedCall(Contract):
    """One call of a batch, without its output: `/tasks/{call_id}` has that. `reason` refines `error_type` where it has several."""

    call_id: str
    tool_id: str
    state: BatchedState = BatchedState.WAITING
    error_type: ErrorType | None = None
    reason: str | None = None


class BatchEnd(Contract):
    """What `RunTools` answers: ids and states, for a hundred outputs do not fit into one message of Temporal.

    `error` is there when the batch has no ordinary end: the input was no batch (then there are no calls), or it was ended from outside
    (then the calls are as the batch last knew them, and end by themselves; there are none when no worker could say).
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
    """Asks after a call that somebody else may have begun under the same id. `waits`: that it runs is no answer."""

    call: ToolCall
    call_id: str
    waits: bool = False


class LookState(StrEnum):
    """`free`: what holds the id was refused, or is forgotten, so the call can be begun. `conflict`: another call has the id."""

    FREE = "free"
    RUNNING = "running"
    ENDED = "ended"
    CONFLICT = "conflict"


class CallLook(Contract):
    """What was seen; an ended call comes without its output."""

    state: LookState
    status: str = ""
    error_type: ErrorType | None = None
    reason: str | None = None
