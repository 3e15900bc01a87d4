"""The calls of a batch, and the results of those that were never made."""

import re
from collections.abc import Iterable
from datetime import datetime

from pydantic import JsonValue

from toolagent.contracts.batches import BATCH_ID_PATTERN, BatchedCall, BatchedState, BatchEnd, BatchResult, ToolBatch
from toolagent.contracts.calls import Caller, CallMode, ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.tasks import TaskState
from toolagent.core.calls.idempotency import fingerprint, keyed_call_id
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT, failed, key_conflict, reason_of
from toolagent.core.digests import digest_of, id_of

__all__ = [
    "SKIPPED",
    "after",
    "batch_fingerprint",
    "batch_id_for_key",
    "batch_id_for_request",
    "batch_id_of_workflow",
    "batched",
    "call_ids",
    "calls_of",
    "counted",
    "is_over",
    "keyed_batch_id",
    "lost",
    "never_made",
    "progress_of",
    "state_of",
]

SKIPPED = "skipped"
"""`details.reason` of a call that was never begun because its batch stopped before."""

_PREFIX = "batch-"


def batch_id_for_key(caller_id: str | None, key: str) -> str:
    """The batch id for a caller's idempotency key."""
    return id_of(_PREFIX, "batch", caller_id, key)


def keyed_batch_id(batch: ToolBatch) -> str | None:
    """The id that follows from the batch's key; None without one."""
    return None if batch.idempotency_key is None else batch_id_for_key(batch.caller.caller_id, batch.idempotency_key)


def batch_id_for_request(request_id: str) -> str:
    """The batch id for a request that is delivered until it is answered."""
    return id_of(_PREFIX, "request", request_id)


def batch_id_of_workflow(workflow_id: str, first_run_id: str) -> str:
    """As for calls: an id of our form is kept; any other may be used again, so the run decides."""
    return workflow_id if re.fullmatch(BATCH_ID_PATTERN, workflow_id) else f"{_PREFIX}{first_run_id}"


def batch_fingerprint(batch: ToolBatch) -> str:
    """Equal for two batches that are the same batch."""
    parts: list[JsonValue] = [[call.idempotency_key, fingerprint(call)] for call in calls_of(batch)]
    return digest_of(batch.ordered, batch.stop_on_error, parts)


def calls_of(batch: ToolBatch) -> tuple[ToolCall, ...]:
    """The calls, with the batch's caller where they name none."""
    nobody = Caller()
    return tuple(
        call.model_copy(update={"mode": CallMode.SYNC, "caller": batch.caller if call.caller == nobody else call.caller})
        for call in batch.calls
    )


def call_ids(batch: ToolBatch, batch_id: str) -> tuple[str, ...]:
    """The id of each call: from its own key if it has one, else from the batch's id and its position."""
    stem = f"call-{batch_id.removeprefix(_PREFIX)}"
    return tuple(keyed_call_id(call) or f"{stem}-{index}" for index, call in enumerate(calls_of(batch)))


def batched(batch: ToolBatch, batch_id: str) -> tuple[BatchedCall, ...]:
    """All calls as not begun."""
    ids = call_ids(batch, batch_id)
    return tuple(BatchedCall(call_id=call_id, tool_id=call.tool_id) for call_id, call in zip(ids, batch.calls, strict=True))


def after(call: BatchedCall, result: ToolResult) -> BatchedCall:
    """The call as ended with this result."""
    if result.status == "success":
        return call.model_copy(update={"state": BatchedState.SUCCESS})
    state = BatchedState.CANCELLED if result.error_type is ErrorType.CANCELLED else BatchedState.ERROR
    return call.model_copy(update={"state": state, "error_type": result.error_type, "reason": reason_of(result)})


def is_over(call: BatchedCall) -> bool:
    return call.state not in (BatchedState.WAITING, BatchedState.RUNNING)


def progress_of(calls: Iterable[BatchedCall]) -> str:
    """`7 of 10`."""
    ended = [*map(is_over, calls)]
    return f"{sum(ended)} of {len(ended)}"


def state_of(end: BatchEnd) -> TaskState:
    """The state of the ended batch: completed, even if calls failed."""
    if end.error is not None:
        return TaskState.FAILED
    return TaskState.CANCELLED if end.cancelled else TaskState.COMPLETED


def never_made(call: BatchedCall, at: datetime) -> ToolResult | None:
    """The result of a call that was never begun; None if it was begun and so has its own."""
    if call.reason == IDEMPOTENCY_CONFLICT:
        return key_conflict(call.call_id, call.tool_id, at)
    if call.state is BatchedState.SKIPPED:
        message = "The call was not begun: the batch had stopped, because a call before it failed or it was cancelled."
        return _failed(call, ErrorType.CANCELLED, message, {"reason": SKIPPED, "sent": False}, at)
    return None


def lost(call: BatchedCall, at: datetime) -> ToolResult:
    """The result of an unknown call: cancelled before its begin, or forgotten after its end."""
    if call.state is BatchedState.CANCELLED:
        return _failed(call, ErrorType.CANCELLED, "The call was cancelled before it was begun.", {"sent": False}, at)
    message = f"The call ended ({call.state.value}), and its result is no longer kept."
    return _failed(call, call.error_type or ErrorType.EXECUTION_ERROR, message, None, at)


def counted(end: BatchEnd, results: tuple[ToolResult, ...]) -> BatchResult:
    succeeded = sum(result.status == "success" for result in results)
    return BatchResult(
        batch_id=end.batch_id,
        total=len(results),
        succeeded=succeeded,
        failed=len(results) - succeeded,
        cancelled=end.cancelled,
        results=results,
    )


def _failed(call: BatchedCall, error_type: ErrorType, message: str, details: JsonValue, at: datetime) -> ToolResult:
    return failed(call.call_id, call.tool_id, ToolError(type=error_type, message=message, details=details), at)
