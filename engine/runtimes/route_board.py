"""The running state of this host's tools, as others see it."""

import asyncio
from collections import defaultdict
from typing import Protocol

from engine.runtimes.runtime import Running
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.routes import RunState, ToolRoute

__all__ = ["RouteBoard", "RouteStore"]


class RouteStore(Protocol):
    """Where routes are remembered."""

    async def save(self, route: ToolRoute, version: str) -> None: ...


class RouteBoard:
    """One route a tool: that of the version that was started last. Each change is saved, in the order in which they happened."""

    def __init__(self, store: RouteStore, host: str) -> None:
        self._store, self._host = store, host
        self._routes: dict[str, tuple[ToolRoute, str]] = {}
        self._order: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def route(self, tool_id: str) -> ToolRoute | None:
        found = self._routes.get(tool_id)
        return found[0] if found else None

    async def starting(self, entry: ToolEntry, index: int) -> None:
        await self._set(self._fresh(entry, index), entry.manifest.version)

    async def running(self, entry: ToolEntry, index: int, running: Running) -> None:
        up = {
            "state": RunState.RUNNING,
            "endpoint": running.endpoint,
            "pid": running.pid,
            "port": running.port,
            "started_at": running.started_at,
        }
        await self._set(self._fresh(entry, index).model_copy(update=up), entry.manifest.version)

    async def ended(self, tool_id: str, version: str, state: RunState, last_error: str | None) -> None:
        """It does not run any more. Says nothing when another version has been started since."""
        found = self._routes.get(tool_id)
        if found is not None and found[1] == version:
            down = {"state": state, "endpoint": None, "pid": None, "port": None, "started_at": None, "last_error": last_error}
            await self._set(found[0].model_copy(update=down), version)

    def _fresh(self, entry: ToolEntry, index: int) -> ToolRoute:
        tool_id = entry.manifest.tool_id
        return ToolRoute(tool_id=tool_id, sources=entry.sources, active_source=index, state=RunState.STARTING, host=self._host)

    async def _set(self, route: ToolRoute, version: str) -> None:
        self._routes[route.tool_id] = route, version
        async with self._order[route.tool_id]:
            await self._store.save(route, version)
