"""Has a synchronisation begun after the catalog has changed: whoever registers a tool, and however."""

from collections.abc import Awaitable, Callable

from engine.store.catalog_state import CatalogState


class CatalogWatch:
    """The first look finds a change: nobody knows what happened before."""

    def __init__(self, state: CatalogState, changed: Callable[[], Awaitable[None]]) -> None:
        self._state, self._changed = state, changed
        self._number: int | None = None

    async def look(self) -> None:
        """What `changed` raises is raised; then the next look tells of it again. Raises StoreUnavailableError."""
        number = await self._state.number()
        if number != self._number:
            await self._changed()
            self._number = number
