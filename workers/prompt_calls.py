"""Answering a waiting caller as soon as the record of the call is committed, when that happens in this very process."""

import asyncio
import uuid

from temporalio.client import Client

from engine.calls.settled import SettledCalls
from toolagent.client.failures import AnswerPendingError
from toolagent.client.temporal import ToolAgentClient
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.core.idempotency import call_id_for_key

__all__ = ["PromptCalls"]

_ELSEWHERE_S = 0.1
"""After this long Temporal is asked too: the call may be settled on another host, or may have ended before."""

_MOST = 16
"""So many calls may be answered before their workflows have ended. Callers who come faster than workflows end have to be held back
by something, or the workflows that wait would become ever more: beyond this they wait for the end."""


class PromptCalls(ToolAgentClient):
    """The client of the front door where a worker shares its process. To be closed with `close`.

    The end of the workflow itself is some round trips later; nobody has to wait for these, since the record decides.
    """

    def __init__(self, client: Client, settled: SettledCalls, *, patience_s: float) -> None:
        super().__init__(client, patience_s=patience_s)
        self._settled = settled
        self._prompt = 0
        self._ending: set[asyncio.Task[None]] = set()

    async def run(self, call: ToolCall, call_id: str | None = None) -> ToolResult:
        """Make the call and wait for its result. Raises CallRefusedError, AnswerPendingError."""
        if self._prompt >= _MOST:
            return await super().run(call, call_id)
        if call.idempotency_key is not None:
            call_id = call_id_for_key(call.caller.caller_id, call.idempotency_key)
        call_id = call_id or f"call-{uuid.uuid4().hex}"
        self._prompt += 1
        try:
            return await self._run(call, call_id)
        finally:
            self._prompt -= 1

    async def close(self) -> None:
        for task in self._ending:
            task.cancel()
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def _run(self, call: ToolCall, call_id: str) -> ToolResult:
        with self._settled.expected(call_id) as settled:
            await self.start(call, call_id)
            await asyncio.wait((settled,), timeout=_ELSEWHERE_S)
            if not settled.done():
                return await self._first(settled, call_id, call.tool_id)
        self._prompt += 1
        task = asyncio.create_task(self._see_ended(call_id), name=f"end of {call_id}")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return settled.result()

    async def _see_ended(self, call_id: str) -> None:
        try:
            await self.result(call_id)
        except AnswerPendingError:
            pass  # its caller has the result; Temporal ends the workflow when it is back
        finally:
            self._prompt -= 1

    async def _first(self, settled: asyncio.Future[ToolResult], call_id: str, tool_id: str) -> ToolResult:
        ended = asyncio.create_task(self.result(call_id, tool_id))
        try:
            await asyncio.wait((settled, ended), return_when=asyncio.FIRST_COMPLETED)
            return settled.result() if settled.done() else await ended
        finally:
            ended.cancel()
            await asyncio.gather(ended, return_exceptions=True)
