"""Caches of tools, and of repairs and quarantines.

They hold until any process changes the catalog.
"""

import asyncio
import time
from collections import defaultdict

from engine.calls.checks.asked import Trouble
from engine.calls.lookup import ToolLookup
from engine.store.catalog_state import CatalogState
from engine.store.production_repairs import ProductionRepairs
from engine.store.quarantine import QuarantineTable
from toolagent.contracts.catalog import ToolEntry
from toolagent.core.failures import StoreUnavailableError
from toolagent.validation.versions import NoSuchVersion

_MOST = 10_000


class CachedTools:
    """A ToolLookup. After a `renew`, answers are at least as new as the catalog at that time."""

    def __init__(self, tools: ToolLookup, state: CatalogState) -> None:
        self._tools, self._state = tools, state
        self._number: int = -1
        self._renewed_at = float("-inf")
        self._renewal: asyncio.Task[None] | None = None
        self._one_renewal = asyncio.Lock()
        self._found: dict[tuple[str, str | None], ToolEntry] = {}
        self._asking: dict[tuple[int, str, str | None], asyncio.Task[ToolEntry | NoSuchVersion | None]] = {}

    @property
    def number(self) -> int:
        """The number of the catalog at the last renewal."""
        return self._number

    @property
    def age_s(self) -> float:
        """The age of the cache."""
        return time.monotonic() - self._renewed_at

    async def renew(self) -> None:
        """Drops entries that may have changed: one small read. One that takes a wait is shared by all callers before it begins.

        Raises StoreUnavailableError, and then drops all.
        """
        began_at = time.monotonic()
        if (number := self._state.number_at_once()) is not None:
            self._take(number, began_at)
            return
        if self._renewal is None:
            self._renewal = asyncio.create_task(self._renew(), name="renew the tools")
            self._renewal.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(self._renewal)

    async def find(self, tool_id: str, wanted: str | None) -> ToolEntry | NoSuchVersion | None:
        key = (tool_id, wanted)
        if (known := self._found.get(key)) is not None:
            return known
        number, found = self._number, await asyncio.shield(self._asked(tool_id, wanted))
        # An entry that was read under an old number may be outdated.
        if isinstance(found, ToolEntry) and number == self._number:
            self._found[key] = found
        return found

    async def list_ids(self) -> tuple[str, ...]:
        return await self._tools.list_ids()

    async def _renew(self) -> None:
        async with self._one_renewal:
            self._renewal, began_at = None, time.monotonic()
            try:
                number = await self._state.number()
            except StoreUnavailableError:
                self._found.clear()
                raise
            self._take(number, began_at)

    def _take(self, number: int, began_at: float) -> None:
        if began_at < self._renewed_at:
            return  # a later renewal has its answer already
        if number != self._number or len(self._found) > _MOST:
            self._found.clear()
        self._number, self._renewed_at = number, began_at

    def _asked(self, tool_id: str, wanted: str | None) -> "asyncio.Task[ToolEntry | NoSuchVersion | None]":
        """One read, shared by all concurrent callers for the same key."""
        key = (self._number, tool_id, wanted)
        if (asking := self._asking.get(key)) is None:
            asking = self._asking[key] = asyncio.create_task(self._find(tool_id, wanted), name=f"find {tool_id}")
            asking.add_done_callback(lambda task: (self._asking.pop(key, None), task.cancelled() or task.exception()))
        return asking

    async def _find(self, tool_id: str, wanted: str | None) -> ToolEntry | NoSuchVersion | None:
        return await self._tools.find(tool_id, wanted)


class RenewedTools:
    """A ToolLookup whose answers are at most `max_age_s` older than the catalog. Raises StoreUnavailableError."""

    def __init__(self, tools: CachedTools, max_age_s: float = 0.0) -> None:
        self._tools, self._max_age_s = tools, max_age_s

    async def find(self, tool_id: str, wanted: str | None) -> ToolEntry | NoSuchVersion | None:
        if self._tools.age_s >= self._max_age_s:
            await self._tools.renew()
        return await self._tools.find(tool_id, wanted)

    async def list_ids(self) -> tuple[str, ...]:
        return await self._tools.list_ids()


class CachedTroubles:
    """All troubles (few), as of the last renewal of `tools`: their changes count as changes of the catalog."""

    def __init__(self, repairs: ProductionRepairs, quarantine: QuarantineTable, tools: CachedTools) -> None:
        self._repairs, self._quarantine, self._tools = repairs, quarantine, tools
        self._number: int | None = None
        self._found: dict[tuple[str, str], Trouble] = {}
        self._one_reading = asyncio.Lock()

    async def of(self, tool_id: str, version: str) -> Trouble | None:
        if self._number != self._tools.number:
            async with self._one_reading:
                if self._number != (number := self._tools.number):
                    self._found = await self._read()
                    # Below 0 the tools were not renewed yet.
                    self._number = number if number >= 0 else None
        return self._found.get((tool_id, version))

    async def _read(self) -> dict[tuple[str, str], Trouble]:
        inputs: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for tool_id, version, given in await self._quarantine.all_inputs():
            inputs[tool_id, version].add(given)
        repairs = {(one.tool_id, one.version): one for one in await self._repairs.under_way()}
        found = {key: Trouble(one.task_id, one.meanwhile, one.previous, frozenset(inputs[key])) for key, one in repairs.items()}
        return {key: Trouble(quarantined=frozenset(given)) for key, given in inputs.items()} | found
