"""Calls over HTTP, for a `ToolSubAgent` and the conformance suite."""

import asyncio
from functools import partial

from toolagent.client.http import ToolAgentHttp
from toolagent.client.http_results import result_of
from toolagent.contracts.calls import CallMode, ToolCall, ToolResult

__all__ = ["HttpCalls"]


class HttpCalls:
    """Makes each call in a thread. Errors of the service or the connection are results too."""

    def __init__(self, service: ToolAgentHttp) -> None:
        self._service = service

    async def run(self, call: ToolCall) -> ToolResult:
        """Make a call and wait for its result."""
        waited_for = call.model_copy(update={"mode": CallMode.SYNC})
        return await asyncio.to_thread(result_of, partial(self._service.run, waited_for), call.tool_id)
