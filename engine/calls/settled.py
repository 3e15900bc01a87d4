"""Telling those who wait in this process that a call's record is committed."""

import asyncio
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager

from toolagent.contracts.calls import ToolResult

__all__ = ["SettledCalls"]


class SettledCalls:
    """By call id. Once the record is committed the result stands: whatever dies after that, the call ends with it."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, list[asyncio.Future[ToolResult]]] = defaultdict(list)

    @contextmanager
    def expected(self, call_id: str) -> Generator[asyncio.Future[ToolResult]]:
        """A future that gets the result when the call is settled in this process during the block."""
        future: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()
        self._waiting[call_id].append(future)
        try:
            yield future
        finally:
            self._waiting[call_id].remove(future)
            if not self._waiting[call_id]:
                del self._waiting[call_id]

    def tell(self, result: ToolResult) -> None:
        """To be said when the record is committed, not before."""
        for future in self._waiting.get(result.call_id, ()):
            if not future.done():
                future.set_result(result)
