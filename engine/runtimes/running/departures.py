"""Tools that were taken out of the registry while they ran: they end on this host, and their routes go."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

from engine.runtimes.running.supervisor import Supervisor

Registered = Callable[[], Awaitable[Collection[str]]]
"""The ids of all tools that there are."""

_BETWEEN_LOOKS_S = 0.5
"""An import takes a tool out and puts it in again when it goes from one file to another."""


class Routes(Protocol):
    async def forget(self, tool_id: str, host: str) -> None: ...


class Departures:
    """Of one host."""

    def __init__(self, supervisor: Supervisor, routes: Routes, registered: Registered, host: str) -> None:
        self._supervisor, self._routes, self._registered, self._host = supervisor, routes, registered, host

    async def end(self) -> tuple[str, ...]:
        """Stop what the registry does not know any more; its calls in flight fail. Returns the ids. Raises StoreUnavailableError."""
        gone = await self._unknown(self._supervisor.tool_ids())
        if gone:
            await asyncio.sleep(_BETWEEN_LOOKS_S)
            gone = await self._unknown(gone)
        for tool_id in gone:
            await self._supervisor.forget(tool_id)
            # `stop` has saved a route.
            await self._routes.forget(tool_id, self._host)
        return tuple(sorted(gone))

    async def _unknown(self, tool_ids: Collection[str]) -> set[str]:
        return {*tool_ids} - {*await self._registered()} if tool_ids else set()
