"""Publishes the running state of this host's tools."""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Protocol, TypeAlias

from engine.runtimes.runtime import Running
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.records import Event, EventType
from toolagent.contracts.routes import RunState, ToolRoute
from toolagent.core.calls.masking import masked_text

Alert: TypeAlias = Callable[[Event], Awaitable[None]]
"""Called with a `health_alert` when a running tool has become unhealthy."""


class RouteStore(Protocol):
    """Stores routes."""

    async def save(self, route: ToolRoute, version: str) -> None: ...


async def no_alert(_event: Event) -> None:
    """The default: no listener."""


class RouteBoard:
    """One route for each tool: of the version that was started last. Saves each change, in order."""

    def __init__(self, store: RouteStore, host: str, alert: Alert = no_alert) -> None:
        self._store, self._host, self._alert = store, host, alert
        self._healthy: dict[str, datetime] = {}
        self._routes: dict[str, tuple[ToolRoute, str]] = {}
        self._order: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def route(self, tool_id: str) -> ToolRoute | None:
        found = self._routes.get(tool_id)
        return found[0] if found else None

    def tool_ids(self) -> tuple[str, ...]:
        return tuple(self._routes)

    def forget(self, tool_id: str) -> None:
        """Forgets the route in memory. The caller removes the saved one."""
        self._routes.pop(tool_id, None)

    async def starting(self, entry: ToolEntry, index: int) -> None:
        await self._set(self._fresh(entry, index), entry.manifest.version)

    def answered(self, tool_id: str) -> None:
        """Records that the tool has just answered."""
        self._healthy[tool_id] = datetime.now(UTC)

    async def running(self, entry: ToolEntry, index: int, running: Running) -> None:
        up = {
            "state": RunState.RUNNING,
            "endpoint": running.endpoint,
            "pid": running.pid,
            "port": running.port,
            "started_at": running.started_at,
        }
        self.answered(entry.manifest.tool_id)
        await self._set(self._fresh(entry, index).model_copy(update=up), entry.manifest.version)

    async def ended(self, tool_id: str, version: str, state: RunState, last_error: str | None) -> None:
        """Records the end of a tool, unless another version was started since."""
        found = self._routes.get(tool_id)
        if found is not None and found[1] == version:
            down = {"state": state, "endpoint": None, "pid": None, "port": None, "started_at": None, "last_error": last_error}
            await self._set(found[0].model_copy(update=down), version)
            if found[0].state is RunState.RUNNING and state is RunState.ERROR:
                await self._alert(self._alert_of(found[0], version, last_error))

    def _alert_of(self, was: ToolRoute, version: str, error: str | None) -> Event:
        run = (was.tool_id, version, self._host, str(was.pid), str(was.started_at))
        last_healthy = self._healthy[was.tool_id].isoformat()
        return Event(
            event_id=f"health_alert:{hashlib.sha256(repr(run).encode()).hexdigest()[:32]}",
            event_type=EventType.HEALTH_ALERT,
            tool_id=was.tool_id,
            at=datetime.now(UTC),
            details={"tool_id": was.tool_id, "error": masked_text(error or "It has ended."), "last_healthy": last_healthy},
        )

    def _fresh(self, entry: ToolEntry, index: int) -> ToolRoute:
        tool_id = entry.manifest.tool_id
        return ToolRoute(tool_id=tool_id, sources=entry.sources, active_source=index, state=RunState.STARTING, host=self._host)

    async def _set(self, route: ToolRoute, version: str) -> None:
        self._routes[route.tool_id] = route, version
        async with self._order[route.tool_id]:
            await self._store.save(route, version)
