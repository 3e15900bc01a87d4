"""Batches of the fake client: each is an asyncio task that makes the fake's calls."""

import asyncio
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from toolagent.client.batches import collected
from toolagent.client.failures import CallRefusedError
from toolagent.client.handles import CallHandle, FollowedCalls
from toolagent.contracts.batches import BatchedCall, BatchedState, BatchEnd, BatchResult, ToolBatch
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.tasks import TaskState, TaskView
from toolagent.core.calls.batches import after, batch_fingerprint, batched, calls_of, keyed_batch_id, lost, progress_of, state_of
from toolagent.core.calls.results import key_conflict

__all__ = ["FakeBatches"]


class _Calls(FollowedCalls, Protocol):
    async def start(self, call: ToolCall, call_id: str | None = None) -> CallHandle: ...


@dataclass
class _Batch:
    asked: ToolBatch
    calls: list[BatchedCall]
    at: datetime
    end: asyncio.Task[None] = field(init=False)
    cancelled: bool = False


class FakeBatches:
    """Keeps the contract of `Batches`, without a limit on parallel calls."""

    def __init__(self, calls: _Calls) -> None:
        self._calls = calls
        self._known: dict[str, _Batch] = {}

    async def start(self, batch: ToolBatch, batch_id: str | None) -> str:
        batch_id = keyed_batch_id(batch) or batch_id or f"batch-{uuid.uuid4().hex}"
        known = self._known.get(batch_id)
        if known is None:
            known = self._known[batch_id] = _Batch(batch, list(batched(batch, batch_id)), datetime.now(UTC))
            known.end = asyncio.create_task(self._run(known))
        elif batch_fingerprint(known.asked) != batch_fingerprint(batch):
            raise CallRefusedError(key_conflict(batch_id, "", datetime.now(UTC), "Another batch has this id."))
        return batch_id

    async def end(self, batch_id: str) -> BatchEnd:
        batch = self._known[batch_id]
        await asyncio.shield(batch.end)
        return BatchEnd(batch_id=batch_id, calls=tuple(batch.calls), cancelled=batch.cancelled)

    async def result(self, batch_id: str) -> BatchResult:
        return await collected(await self.end(batch_id), self._result_of)

    async def task(self, batch_id: str) -> TaskView | None:
        batch = self._known.get(batch_id)
        if batch is None:
            return None
        has_ended = batch.end.done()
        return TaskView(
            task_id=batch_id,
            status=state_of(await self.end(batch_id)) if has_ended else TaskState.RUNNING,
            started_at=batch.at,
            ended_at=datetime.now(UTC) if has_ended else None,
            calls=tuple(batch.calls),
            progress=progress_of(batch.calls),
        )

    async def cancel(self, batch_id: str) -> bool:
        batch = self._known.get(batch_id)
        if batch is None:
            return False
        batch.cancelled = not batch.end.done()
        for call in batch.calls:
            if call.state is BatchedState.RUNNING:
                await self._calls.cancel(call.call_id)
        return True

    async def _run(self, batch: _Batch) -> None:
        places = range(len(batch.calls))
        lanes = [places] if batch.asked.ordered else [(place,) for place in places]
        await asyncio.gather(*(self._lane(batch, lane) for lane in lanes))

    async def _lane(self, batch: _Batch, places: Iterable[int]) -> None:
        for place in places:
            entry = batch.calls[place]
            if _stops(batch):
                batch.calls[place] = entry.model_copy(update={"state": BatchedState.SKIPPED})
                continue
            batch.calls[place] = entry.model_copy(update={"state": BatchedState.RUNNING})
            batch.calls[place] = after(entry, await self._made(calls_of(batch.asked)[place], entry.call_id))

    async def _made(self, call: ToolCall, call_id: str) -> ToolResult:
        try:
            return await (await self._calls.start(call, call_id)).result()
        except CallRefusedError as error:
            return error.result

    async def _result_of(self, call: BatchedCall) -> ToolResult:
        if await self._calls.task(call.call_id) is None:
            return lost(call, datetime.now(UTC))
        return await self._calls.result(call.call_id, call.tool_id)


def _stops(batch: _Batch) -> bool:
    failed_states = {BatchedState.ERROR, BatchedState.CANCELLED, BatchedState.SKIPPED}
    return batch.cancelled or (batch.asked.stop_on_error and any(call.state in failed_states for call in batch.calls))
