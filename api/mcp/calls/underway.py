"""Running calls of MCP clients: made here, or by another process and found in the records."""

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
from toolagent.core.calls.idempotency import fingerprint
from toolagent.core.calls.results import key_conflict

_LOOK_S, _LONGEST_LOOK_S = 0.05, 0.5
_CANCEL_S = 60.0
_ABSENT_S = 3.0
"""A call without a record and a workflow for this long was never accepted."""

_log = structlog.stdlib.get_logger(__name__)


class LostCallError(Exception):
    """Neither the records nor Temporal know the call: its process ended before the call was recorded."""


def outcome_unknown(call_id: str) -> str:
    """The message about a lost call."""
    return f"The service does not know the outcome of the call {call_id}: it ended meanwhile."


@dataclass(slots=True)
class _Look:
    """A search for the end of a call, shared by all requests that wait for it."""

    task: asyncio.Task[ToolResult]
    waiting: int = 0


class Underway:
    """A request may stop waiting for the end of a call; the call goes on."""

    def __init__(self, client: Calls, records: CallRecords) -> None:
        self._client, self._records = client, records
        self._calls: dict[str, tuple[ToolCall, asyncio.Task[ToolResult]]] = {}
        self._looks: dict[str, _Look] = {}
        self._cancelling: set[asyncio.Task[None]] = set()

    def begin(self, call: ToolCall, call_id: str, *, is_new: bool) -> None:
        """Begin a call. `is_new`: no other call has its id. Raises CallRefusedError if another call has the id."""
        if (known := self._calls.get(call_id)) is not None:
            if fingerprint(known[0]) != fingerprint(call):
                raise CallRefusedError(key_conflict(call_id, call.tool_id, datetime.now(UTC)))
            return
        task = asyncio.create_task(end_of(self._client, TakenCall(call, call_id, is_new=is_new)), name=f"call {call_id}")
        self._calls[call_id] = call, task
        task.add_done_callback(lambda done: (self._calls.pop(call_id, None), done.cancelled() or done.exception()))

    @contextmanager
    def end(self, call_id: str) -> "Generator[asyncio.Task[ToolResult]]":
        """The end of a call, as a task to wait for inside the block. The task raises LostCallError, StoreUnavailableError."""
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

    def cancel_soon(self, call_id: str) -> None:
        """Cancel a call without waiting. Tries for a minute while Temporal is away or does not know the call yet."""
        task = asyncio.create_task(self._cancelled(call_id), name=f"cancel {call_id}")
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)

    async def close(self) -> None:
        """Stop waiting for all calls; they go on where they are made."""
        tasks: list[asyncio.Task[ToolResult] | asyncio.Task[None]] = [*(task for _, task in self._calls.values()), *self._cancelling]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _cancelled(self, call_id: str) -> None:
        until, pause_s = time.monotonic() + _CANCEL_S, _LOOK_S
        while time.monotonic() < until:
            with suppress(AnswerPendingError):
                if await self._client.cancel(call_id) or call_id not in self._calls:
                    return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_LOOK_S)
        _log.warning("call_not_cancelled", call_id=call_id, reason="Temporal was not reached")

    async def _looked_for(self, call_id: str) -> ToolResult:
        pause_s, absent_s = _LOOK_S, 0.0
        while (record := await self._records.get(call_id)) is None or record.result is None:
            # While Temporal is away, it is not known whether the call is lost.
            with suppress(AnswerPendingError):
                view = await self._client.task(call_id)
                if view is not None and view.result is not None:
                    return view.result
                absent_s = 0.0 if view is not None else absent_s + pause_s
                if absent_s > _ABSENT_S:
                    raise LostCallError(call_id)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_LOOK_S)
        return record.result
