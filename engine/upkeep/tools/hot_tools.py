"""Starts hot tools before their first call."""

import asyncio
import time
from collections.abc import Collection

import structlog

from engine.calling.intake import Intake
from engine.registry.registry import ToolRegistry
from engine.runtimes.failures import NotSent
from engine.runtimes.running.supervisor import Supervisor
from engine.store.calls import CallTable
from engine.store.routes import RouteTable
from toolagent.contracts.catalog import ToolEntry
from toolagent.core.failures import StoreUnavailableError

_FIRST_PAUSE_S = 60.0
_LONGEST_PAUSE_S = 3600.0
_STARTS_AT_ONCE = 4
"""More starts at once would only slow down each other, and calls."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class HotTools:
    """Starts the hot tools of one host in the background, because a first start may build an environment. Call `close` at the end."""

    def __init__(
        self, supervisor: Supervisor, registry: ToolRegistry, routes: RouteTable, calls: CallTable, intake: Intake, host: str
    ) -> None:
        self._supervisor, self._registry, self._routes, self._calls = supervisor, registry, routes, calls
        self._intake, self._host = intake, host
        self._starts: dict[str, asyncio.Task[None]] = {}
        self._failed: dict[str, tuple[float, float]] = {}
        """When a failed tool may be started again, and its pause."""
        self._needless: set[str] = set()
        """Tools that need no process."""
        self._stops: dict[str, int] = {}
        self._catalog = -1
        self._room = asyncio.Semaphore(_STARTS_AT_ONCE)

    async def start(self, hot: frozenset[str], running: Collection[str], room: int, catalog: int) -> tuple[str, ...]:
        """Begins to start hot tools that run nowhere, recently used ones first, as far as there is room. A draining host starts none.

        A tool that was stopped by order stays stopped until its next call. A failed one is retried after a pause, or when the number of
        the `catalog` changes. Raises StoreUnavailableError.
        """
        if catalog != self._catalog:
            self._failed, self._needless, self._catalog = {}, set(), catalog
        self._stops |= {tool_id: self._supervisor.keeping.stops(tool_id) for tool_id in running}
        room -= len(self._starts)
        lacking = [tool_id for tool_id in hot.difference(running, self._needless) if self._may_start(tool_id)]
        if room <= 0 or not lacking or not self._intake.is_open:
            return ()
        elsewhere = await self._routes.up_elsewhere(self._host)
        begun: list[str] = []
        for tool_id in await self._by_use([one for one in lacking if one not in elsewhere]):
            entry = await self._registry.entry(tool_id)
            if entry is None:
                continue
            if self._supervisor.is_ready(entry):
                self._needless |= set() if self._supervisor.is_running(tool_id, entry.manifest.version) else {tool_id}
                continue
            if len(begun) == room:
                break
            self._begin(tool_id, entry)
            begun.append(tool_id)
        return tuple(begun)

    async def close(self) -> None:
        """Ends the starts in progress."""
        starts = [*self._starts.values()]
        for start in starts:
            start.cancel()
        await asyncio.gather(*starts, return_exceptions=True)

    def _may_start(self, tool_id: str) -> bool:
        return (
            tool_id not in self._starts
            and not self._supervisor.keeping.is_starting(tool_id)
            and time.monotonic() >= self._failed.get(tool_id, (0.0, 0.0))[0]
            and self._supervisor.keeping.stops(tool_id) == self._stops.get(tool_id, 0)
        )

    async def _by_use(self, tool_ids: Collection[str]) -> list[str]:
        used = await self._calls.last_used(tool_ids)
        return sorted(sorted(tool_ids), key=lambda tool_id: used.get(tool_id, ""), reverse=True)

    def _begin(self, tool_id: str, entry: ToolEntry) -> None:
        task = self._starts[tool_id] = asyncio.create_task(self._started(tool_id, entry), name=f"start hot {tool_id}")
        task.add_done_callback(lambda _: self._starts.pop(tool_id, None))

    async def _started(self, tool_id: str, entry: ToolEntry) -> None:
        try:
            async with self._room:
                if self._intake.is_open:  # it may have begun to drain meanwhile
                    await self._supervisor.start(entry, lambda _: None)
        except (NotSent, StoreUnavailableError) as failure:
            _, before_s = self._failed.get(tool_id, (0.0, _FIRST_PAUSE_S / 2))
            pause = min(2 * before_s, _LONGEST_PAUSE_S)
            self._failed[tool_id] = (time.monotonic() + pause, pause)
            _log.warning("hot_tool_not_started", tool_id=tool_id, reason=str(failure), again_in_s=pause)
        else:
            self._failed.pop(tool_id, None)
