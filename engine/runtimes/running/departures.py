"""Stops tools that were removed from the registry while they ran, and removes their routes."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

from engine.runtimes.running.supervisor import Supervisor

Registered = Callable[[], Awaitable[Collection[str]]]
"""Returns the ids of all registered tools."""

_BETWEEN_LOOKS_S = 0.5
"""The registry is asked twice: an import removes a tool and adds it again when it moves to another file."""


class Routes(Protocol):
    async def forget(self, tool_id: str, host: str) -> None: ...


class Departures:
    """The departed tools of one host."""

    def __init__(self, supervisor: Supervisor, routes: Routes, registered: Registered, host: str) -> None:
        self._supervisor, self._routes, self._registered, self._host = supervisor, routes, registered, host

    async def end(self) -> tuple[str, ...]:
        """Stops tools that the registry does not know any more; their calls fail. Returns the ids. Raises StoreUnavailableError."""
        gone = await self._unknown(self._supervisor.tool_ids())
        if gone:
            await asyncio.sleep(_BETWEEN_LOOKS_S)
            gone = await self._unknown(gone)
        for tool_id in gone:
            await self._supervisor.forget(tool_id)
            # Stopping the tool saved a route.
            await self._routes.forget(tool_id, self._host)
        return tuple(sorted(gone))

    async def _unknown(self, tool_ids: Collection[str]) -> set[str]:
        return {*tool_ids} - {*await self._registered()} if tool_ids else set()
