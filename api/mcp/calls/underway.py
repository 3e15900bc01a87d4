"""Calls of MCP clients that go on: waited for here, or looked for in the records where another process makes them."""

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from api.calls import TakenCall, end_of
from api.ports import CallRecords, Calls
from toolagent.client.failures import AnswerPendingError, CallRefusedError
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.tasks import TaskView
from toolagent.core.calls.idempotency import fingerprint
from toolagent.core.calls.results import key_conflict

_LOOK_S, _LONGEST_LOOK_S = 0.05, 0.5
_CANCEL_S = 60.0
_ABSENT_S = 3.0
"""A call that has neither a record nor a workflow for so long was never taken."""

_log = structlog.stdlib.get_logger(__name__)


class LostCallError(Exception):
    """Neither the records nor Temporal know the call: its process ended before it was written down."""


def outcome_unknown(call_id: str) -> str:
    """What a client is told of a lost call."""
    return f"The service does not know the outcome of the call {call_id}: it ended meanwhile."


@dataclass(slots=True)
class _Look:
    """One look for the end of a call, for all who wait for it here."""

    task: asyncio.Task[ToolResult]
    waiting: int = 0


class Underway:
    """A request that asks for the end of a call may stop waiting; the call goes on."""

    def __init__(self, client: Calls, records: CallRecords) -> None:
        self._client, self._records = client, records
        self._calls: dict[str, tuple[ToolCall, asyncio.Task[ToolResult]]] = {}
        self._looks: dict[str, _Look] = {}
        self._cancelling: set[asyncio.Task[None]] = set()

    def begin(self, call: ToolCall, call_id: str, *, is_new: bool) -> None:
        """Make it. `is_new`: no other call has its id. Raises CallRefusedError where another call has the id."""
        if (known := self._calls.get(call_id)) is not None:
            if fingerprint(known[0]) != fingerprint(call):
                raise CallRefusedError(key_conflict(call_id, call.tool_id, datetime.now(UTC)))
            return
        task = asyncio.create_task(self._made(call, call_id, is_new=is_new), name=f"call {call_id}")
        self._calls[call_id] = call, task
        task.add_done_callback(lambda done: (self._calls.pop(call_id, None), done.cancelled() or done.exception()))

    @contextmanager
    def end(self, call_id: str) -> "Generator[asyncio.Task[ToolResult]]":
        """How it ends, for who waits no longer than the block. Raises LostCallError, StoreUnavailableError, out of the task."""
        if (made := self._calls.get(call_id)) is not None:
            yield made[1]
            return
        look = self._looks.get(call_id)
        if look is None or look.task.done():
            look = self._looks[call_id] = _Look(asyncio.create_task(self._looked_for(call_id), name=f"end of {call_id}"))
        look.waiting += 1
        try:
            yield look.task
        finally:
            look.waiting -= 1
            if not look.waiting:
                look.task.cancel()
                if self._looks.get(call_id) is look:
                    del self._looks[call_id]

    async def result(self, call_id: str) -> ToolResult | None:
        """Of a call that has ended."""
        record = await self._records.get(call_id)
        return record.result if record is not None else None

    async def view(self, call_id: str) -> TaskView | None:
        """How far a call is that has not ended; None where Temporal does not know it.

        Raises AnswerPendingError where Temporal was not reached.
        """
        return await self._client.task(call_id)

    async def cancel(self, call_id: str) -> bool:
        """Ask it to end; False where Temporal does not know it. Raises AnswerPendingError where Temporal was not reached."""
        return await self._client.cancel(call_id)

    def cancel_soon(self, call_id: str) -> None:
        """For who is being cancelled, and must not wait. Tried again for a minute while Temporal is away or does not know the call yet."""
        task = asyncio.create_task(self._cancelled(call_id), name=f"cancel {call_id}")
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)

    async def close(self) -> None:
        """No request waits here any more; the calls go on where they are made."""
        tasks: list[asyncio.Task[ToolResult] | asyncio.Task[None]] = [*(task for _, task in self._calls.values()), *self._cancelling]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _cancelled(self, call_id: str) -> None:
        until, pause_s = time.monotonic() + _CANCEL_S, _LOOK_S
        while time.monotonic() < until:
            with suppress(AnswerPendingError):
                if await self.cancel(call_id) or call_id not in self._calls:
                    return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_LOOK_S)
        _log.warning("call_not_cancelled", call_id=call_id, reason="Temporal was not reached")

    async def _made(self, call: ToolCall, call_id: str, *, is_new: bool) -> ToolResult:
        return await end_of(self._client, TakenCall(call, call_id, is_new=is_new))

    async def _looked_for(self, call_id: str) -> ToolResult:
        pause_s, absent_s = _LOOK_S, 0.0
        while (result := await self.result(call_id)) is None:
            # While Temporal is away it is not known whether a call was lost.
            with suppress(AnswerPendingError):
                view = await self.view(call_id)
                if view is not None and view.result is not None:
                    return view.result
                absent_s = 0.0 if view is not None else absent_s + pause_s
                if absent_s > _ABSENT_S:
                    raise LostCallError(call_id)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_LOOK_S)
        return result
