"""Batches over Temporal: start, await and follow them."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta

from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
)
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from toolagent.client import names
from toolagent.client.child import found_by, memo_of
from toolagent.client.failures import AnswerPendingError, BrokenOffError, CallRefusedError
from toolagent.client.handles import FollowedCalls
from toolagent.client.patience import SilenceError, described, is_away, patiently, queried, reached
from toolagent.client.task_views import view_of
from toolagent.contracts.batches import BatchedCall, BatchedState, BatchEnd, BatchResult, ToolBatch
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent.contracts.tasks import TaskView
from toolagent.core.calls.batches import batch_fingerprint, counted, keyed_batch_id, lost, never_made, progress_of, state_of
from toolagent.core.calls.results import failed, key_conflict

__all__ = ["Batches", "collected", "pending"]

_START_TIMEOUT = timedelta(seconds=5)
_QUERY_TIMEOUT = timedelta(seconds=3)
_AT_ONCE = 8

Fetch = Callable[[BatchedCall], Awaitable[ToolResult]]
"""Fetches the result of a call that was started."""


class Batches:
    """The batch methods of `ToolAgentClient`."""

    def __init__(self, client: Client, calls: FollowedCalls, patience_s: float) -> None:
        self._client = client
        self._calls = calls
        self._patience_s = patience_s

    async def start(self, batch: ToolBatch, batch_id: str | None) -> str:
        """The batch's id. Raises CallRefusedError, AnswerPendingError."""
        batch_id = keyed_batch_id(batch) or batch_id or f"batch-{uuid.uuid4().hex}"
        try:
            with _reached(batch_id):
                await self._client.start_workflow(
                    names.RUN_TOOLS,
                    batch,
                    id=batch_id,
                    task_queue=names.TASK_QUEUE,
                    id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                    memo=memo_of(batch_fingerprint(batch), batch.callback_url),
                    search_attributes=found_by("batch", caller_id=batch.caller.caller_id),
                    static_summary=f"{len(batch.calls)} calls",
                    rpc_timeout=_START_TIMEOUT,
                )
        except WorkflowAlreadyStartedError:
            await self._require_same(batch, batch_id)
        return batch_id

    async def end(self, batch_id: str) -> BatchEnd:
        """Wait for the end. Raises AnswerPendingError."""
        try:
            return await patiently(self._handle(batch_id).result, is_away, self._patience_s)
        except SilenceError as error:
            message = f"Temporal has been away for {self._patience_s:g} s; the batch goes on when it is back. Ask for it by its id."
            raise pending(batch_id, message) from error
        except WorkflowFailureError as error:
            return await self._broken_off(batch_id, error)

    async def result(self, batch_id: str) -> BatchResult:
        """Wait for the end, and collect the results. Raises AnswerPendingError, BrokenOffError."""
        end = await self.end(batch_id)
        if end.error is not None:
            raise BrokenOffError(failed(batch_id, "", end.error, datetime.now(UTC)))
        return await collected(end, self._result_of)

    async def task(self, batch_id: str) -> TaskView | None:
        """State of the batch; None when Temporal does not know it. Raises AnswerPendingError."""
        description = await self._described(batch_id)
        if description is None:
            return None
        view = await view_of(description, self._client.data_converter)
        if view.ended_at is None:
            calls = await self._calls_of(batch_id)
            return view.model_copy(update={"calls": calls, "progress": progress_of(calls) if calls else None})
        end = await self.end(batch_id)
        error = ToolResult(status="error", error=end.error, error_type=end.error.type, call_id=batch_id) if end.error else None
        told = {"calls": end.calls, "progress": progress_of(end.calls), "status": state_of(end), "result": error, "tool_id": None}
        return view.model_copy(update=told)

    async def _result_of(self, call: BatchedCall) -> ToolResult:
        try:
            return await self._calls.result(call.call_id, call.tool_id)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return lost(call, datetime.now(UTC))

    async def _calls_of(self, batch_id: str) -> tuple[BatchedCall, ...]:
        """Empty while no worker answers."""
        try:
            return await queried(self._handle(batch_id), names.PROGRESS, tuple[BatchedCall, ...], _QUERY_TIMEOUT)
        except (RPCError, WorkflowQueryFailedError, WorkflowQueryRejectedError):
            return ()

    async def _broken_off(self, batch_id: str, error: WorkflowFailureError) -> BatchEnd:
        """The batch was ended from outside; the last states of its calls still hold."""
        calls = await self._calls_of(batch_id)
        message = f"The batch was ended from outside: {error.cause}. Its calls are tasks of their own and end by themselves."
        return BatchEnd(batch_id=batch_id, calls=calls, error=ToolError(type=ErrorType.EXECUTION_ERROR, message=message))

    async def _require_same(self, batch: ToolBatch, batch_id: str) -> None:
        description = await self._described(batch_id)
        if description is None or await description.memo_value(names.FINGERPRINT, "", type_hint=str) == batch_fingerprint(batch):
            return
        message = "This idempotency key or batch id was used for another batch. Choose a new one."
        raise CallRefusedError(key_conflict(batch_id, "", datetime.now(UTC), message))

    async def _described(self, batch_id: str) -> WorkflowExecutionDescription | None:
        with _reached(batch_id):
            return await described(self._handle(batch_id))

    def _handle(self, batch_id: str) -> WorkflowHandle[object, BatchEnd]:
        return self._client.get_workflow_handle(batch_id, result_type=BatchEnd)


async def collected(end: BatchEnd, fetch: Fetch) -> BatchResult:
    """The results of all calls, in order; a few are fetched at a time."""
    places = asyncio.Semaphore(_AT_ONCE)
    at = datetime.now(UTC)

    async def result_of(call: BatchedCall) -> ToolResult:
        made_up = never_made(call, at)
        if made_up is not None:
            return made_up
        async with places:
            return await fetch(call)

    # A call that is in the batch twice is one call.
    keys = [(call.call_id, call.state is BatchedState.SKIPPED, call.reason) for call in end.calls]
    distinct = dict(zip(keys, end.calls, strict=True))
    results = dict(zip(distinct, await asyncio.gather(*map(result_of, distinct.values())), strict=True))
    return counted(end, tuple(map(results.__getitem__, keys)))


def pending(call_id: str, message: str, tool_id: str = "") -> AnswerPendingError:
    """Temporal does not answer now, for the reason in `message`."""
    return AnswerPendingError(failed(call_id, tool_id, ToolError(type=ErrorType.UNAVAILABLE, message=message), datetime.now(UTC)))


def _reached(batch_id: str) -> AbstractContextManager[None]:
    return reached(lambda reason: pending(batch_id, f"{reason} Ask for the batch by its id."))
