"""A client that answers as soon as this process has committed the record of the call."""

import asyncio
import logging

from temporalio.client import Client

from api.client.guarded_calls import GuardedCalls
from api.client.recording import Recording
from api.ports import Settled
from toolagent.client.call_ids import new_call_id
from toolagent.client.failures import AnswerPendingError
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.core.calls.idempotency import keyed_call_id

_LOGGER = logging.getLogger(__name__)

_ELSEWHERE_S = 0.1
"""After this time, Temporal is asked too: the call may have been settled on another host, or ended before."""

MOST_AHEAD = 16
"""The most calls that are answered before their workflows end. Other callers wait for the end of their workflow: otherwise, if calls came
faster than workflows end, open workflows would pile up."""


class PromptCalls(GuardedCalls):
    """The client of a front door in the process of a worker. It must be closed with `close`.

    A workflow ends some round trips after its record is written. Callers need not wait for that, because the record decides.
    """

    def __init__(self, client: Client, settled: Settled, recording: Recording, *, patience_s: float) -> None:
        super().__init__(client, recording, patience_s=patience_s)
        self._settled = settled
        self._asked = 0
        self._ending: dict[asyncio.Task[ToolResult], str] = {}
        self._is_closed = False

    @property
    def ahead(self) -> int:
        """The number of calls that wait for their record, or were answered from it while their workflows go on."""
        return self._asked + len(self._ending)

    async def run(self, call: ToolCall, call_id: str | None = None, *, is_new: bool = False) -> ToolResult:
        """The result of the call. Raises CallRefusedError, AnswerPendingError."""
        if self.ahead >= MOST_AHEAD:
            return await super().run(call, call_id, is_new=is_new)
        call_id = keyed_call_id(call) or call_id
        self._asked += 1
        try:
            return await self._run(call, call_id or new_call_id(), is_new=is_new or call_id is None)
        finally:
            self._asked -= 1

    async def close(self) -> None:
        """Stop waiting for the workflows of answered calls. Other calls go on."""
        self._is_closed = True
        tasks = [*self._ending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, call: ToolCall, call_id: str, *, is_new: bool) -> ToolResult:
        with self._settled.expected(call_id) as settled:
            await self.start(call, call_id, is_new=is_new)
            await asyncio.wait((settled,), timeout=_ELSEWHERE_S)
            ended = asyncio.create_task(self.result(call_id, call.tool_id), name=f"end of {call_id}")
            try:
                await asyncio.wait((settled, ended), return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                ended.cancel()
                raise
        if not settled.done():
            return await ended
        self._ending[ended] = call_id
        ended.add_done_callback(self._see_ended)
        if self._is_closed:
            ended.cancel()
        return settled.result()

    def _see_ended(self, ended: asyncio.Task[ToolResult]) -> None:
        """Log a workflow that failed after its call was answered."""
        call_id = self._ending.pop(ended)
        if ended.cancelled() or (error := ended.exception()) is None:
            return
        if isinstance(error, AnswerPendingError):
            _LOGGER.warning("%s was answered from its record; its workflow has yet to end: %s", call_id, error)
        else:
            _LOGGER.error("%s was answered from its record; how its workflow ended cannot be seen", call_id, exc_info=error)
