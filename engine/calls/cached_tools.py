"""Tools as calls see them, remembered until the catalog changes, whichever process changes it."""

import asyncio

from engine.calls.lookup import ToolLookup
from engine.store.catalog_state import CatalogState
from toolagent.contracts.catalog import ToolEntry
from toolagent.core.failures import StoreUnavailableError
from toolagent.validation.versions import NoSuchVersion

_MOST = 10_000


class CachedTools:
    """A ToolLookup. An answer after a `renew` is as new as the catalog at that time, or newer."""

    def __init__(self, tools: ToolLookup, state: CatalogState) -> None:
        self._tools, self._state = tools, state
        self._number = -1
        self._found: dict[tuple[str, str | None], ToolEntry] = {}
        self._asking: dict[tuple[int, str, str | None], asyncio.Task[ToolEntry | NoSuchVersion | None]] = {}

    async def renew(self) -> None:
        """Drop entries that may have changed: one small read. Raises StoreUnavailableError; then all are dropped."""
        try:
            number = await self._state.number()
        except StoreUnavailableError:
            self._found.clear()
            raise
        if number != self._number or len(self._found) > _MOST:
            self._found.clear()
        self._number = number

    async def entry(self, tool_id: str, version: str | None = None) -> ToolEntry | None:
        return await self._tools.entry(tool_id, version)

    async def find(self, tool_id: str, wanted: str | None) -> ToolEntry | NoSuchVersion | None:
        key = (tool_id, wanted)
        if (known := self._found.get(key)) is not None:
            return known
        number, found = self._number, await asyncio.shield(self._asked(tool_id, wanted))
        # Read under a number that has passed it may be older than what others see.
        if isinstance(found, ToolEntry) and number == self._number:
            self._found[key] = found
        return found

    def _asked(self, tool_id: str, wanted: str | None) -> "asyncio.Task[ToolEntry | NoSuchVersion | None]":
        """One reading for all who want the same at once."""
        key = (self._number, tool_id, wanted)
        if (asking := self._asking.get(key)) is None:
            asking = self._asking[key] = asyncio.create_task(self._find(tool_id, wanted), name=f"find {tool_id}")
            asking.add_done_callback(lambda task: (self._asking.pop(key, None), task.cancelled() or task.exception()))
        return asking

    async def _find(self, tool_id: str, wanted: str | None) -> ToolEntry | NoSuchVersion | None:
        return await self._tools.find(tool_id, wanted)

    async def list_ids(self) -> tuple[str, ...]:
        return await self._tools.list_ids()
