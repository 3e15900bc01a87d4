"""Many calls, each a child workflow: several at a time or one after the other."""

import asyncio
from collections.abc import Iterator

from pydantic import JsonValue
from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, FailureError, WorkflowAlreadyStartedError, is_cancelled_exception

from toolagent.client import child, names
from toolagent.contracts.batches import BatchedCall, BatchedState, BatchEnd, CallLook, LookRequest, LookState, ToolBatch
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError
from toolagent.core.calls.batches import after, batch_id_of_workflow, batched, calls_of, is_over
from toolagent.core.calls.callbacks import callback_of_batch
from toolagent.core.calls.idempotency import fingerprint
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT
from toolagent_service import stubs
from workflows import options
from workflows.calls.callbacks import announce
from workflows.inputs import input_of

LANES = 16
"""The most calls of a batch at a time."""

_ATTEMPTS = 5
"""How often a start is tried for a key that has become free, if other starts are quicker each time."""


@workflow.defn(name=names.RUN_TOOLS)
class RunTools:
    def __init__(self) -> None:
        self._asked: tuple[ToolCall, ...] = ()
        self._calls: list[BatchedCall] = []
        self._stops_on_error = False
        self._cancelled = False

    @workflow.run
    async def run(self, batch: JsonValue = None, *surplus: JsonValue) -> BatchEnd:
        """Takes a `ToolBatch` as plain JSON. As in `InvokeTool`, the faults of the input are the result."""
        info = workflow.info()
        batch_id = batch_id_of_workflow(info.workflow_id, info.first_execution_run_id)
        try:
            asked = input_of(ToolBatch, batch, surplus)
        except ApplicationError as error:
            return BatchEnd(batch_id=batch_id, error=ToolError(type=ErrorType.VALIDATION_ERROR, message=error.message))
        self._asked = calls_of(asked)
        self._calls = list(batched(asked, batch_id))
        self._stops_on_error = asked.stop_on_error
        await self._ended(1 if asked.ordered else LANES)
        end = BatchEnd(batch_id=batch_id, calls=tuple(self._calls), cancelled=self._cancelled)
        await announce(callback_of_batch(asked, end, workflow.now()))
        return end

    @workflow.query(name=names.PROGRESS)
    def progress(self) -> tuple[BatchedCall, ...]:
        return tuple(self._calls)

    async def _ended(self, width: int) -> None:
        waiting = iter(self._first_of_each_id())
        lanes = [asyncio.create_task(self._lane(waiting)) for _ in range(min(width, len(self._calls)))]
        try:
            await workflow.wait(lanes)
        except asyncio.CancelledError:
            self._cancelled = True
            for lane in lanes:
                lane.cancel()
            await workflow.wait(lanes)
        for lane in lanes:
            lane.result()
        self._repeat_for_the_same_ids()

    async def _lane(self, waiting: Iterator[int]) -> None:
        for place in waiting:
            if self._stops():
                self._note(place, BatchedState.SKIPPED)
            else:
                self._note(place, BatchedState.RUNNING)
                self._calls[place] = await self._made(self._asked[place], self._calls[place])

    def _stops(self) -> bool:
        failed = any(is_over(call) and call.state is not BatchedState.SUCCESS for call in self._calls)
        return self._cancelled or (self._stops_on_error and failed)

    async def _made(self, call: ToolCall, entry: BatchedCall) -> BatchedCall:
        try:
            return after(entry, await child.made(call, entry.call_id, WorkflowIDReusePolicy.REJECT_DUPLICATE))
        except WorkflowAlreadyStartedError:
            return await self._made_elsewhere(call, entry)
        except asyncio.CancelledError:
            return _cancelled(entry)

    async def _made_elsewhere(self, call: ToolCall, entry: BatchedCall) -> BatchedCall:
        """A call with this key exists: it is this one, if it is the same call. Cancelling the batch does not cancel it."""
        try:
            for _ in range(_ATTEMPTS):
                look = await self._looked(call, entry.call_id)
                if look.state is not LookState.FREE:
                    return _seen(entry, look)
                try:
                    return after(entry, await child.made(call, entry.call_id, WorkflowIDReusePolicy.ALLOW_DUPLICATE))
                except WorkflowAlreadyStartedError:
                    continue  # another start was quicker; it may be this call, or be refused like the one before
        except (asyncio.CancelledError, FailureError) as error:
            return _cancelled(entry) if is_cancelled_exception(error) else _unseen(entry)
        return _conflicting(entry)

    async def _looked(self, call: ToolCall, call_id: str) -> CallLook:
        """Waits for a running call, by an activity whose retries are not in our history. The state is never `RUNNING`."""
        request = LookRequest(call=call, call_id=call_id)
        look = await workflow.execute_local_activity(stubs.look_at_call, request, **options.look(call.tool_id))
        if look.state is not LookState.RUNNING:
            return look
        return await workflow.execute_activity(stubs.look_at_call, request.model_copy(update={"waits": True}), **options.await_call(call))

    def _first_of_each_id(self) -> list[int]:
        """The first place of each call id: calls with the same key are one call."""
        places: dict[str, int] = {}
        for place, call in enumerate(self._calls):
            places.setdefault(call.call_id, place)
        return list(places.values())

    def _repeat_for_the_same_ids(self) -> None:
        """Copy the end of each call to its repetitions. Other calls with the same key are conflicts."""
        ended = {self._calls[place].call_id: (self._asked[place], self._calls[place]) for place in self._first_of_each_id()}
        for place, (asked, call) in enumerate(zip(self._asked, self._calls, strict=True)):
            first, end = ended[call.call_id]
            self._calls[place] = end if fingerprint(asked) == fingerprint(first) else _conflicting(end)

    def _note(self, place: int, state: BatchedState) -> None:
        self._calls[place] = self._calls[place].model_copy(update={"state": state})


def _seen(entry: BatchedCall, look: CallLook) -> BatchedCall:
    if look.state is LookState.CONFLICT:
        return _conflicting(entry)
    state = BatchedState.SUCCESS if look.status == "success" else BatchedState.ERROR
    state = BatchedState.CANCELLED if look.error_type is ErrorType.CANCELLED else state
    return entry.model_copy(update={"state": state, "error_type": look.error_type, "reason": look.reason})


def _cancelled(entry: BatchedCall) -> BatchedCall:
    return entry.model_copy(update={"state": BatchedState.CANCELLED, "error_type": ErrorType.CANCELLED})


def _unseen(entry: BatchedCall) -> BatchedCall:
    """The call could not be looked at, which is our fault; other calls go on."""
    return entry.model_copy(update={"state": BatchedState.ERROR, "error_type": ErrorType.EXECUTION_ERROR})


def _conflicting(entry: BatchedCall) -> BatchedCall:
    conflict = {"state": BatchedState.ERROR, "error_type": ErrorType.REJECTED, "reason": IDEMPOTENCY_CONFLICT}
    return entry.model_copy(update=conflict)
