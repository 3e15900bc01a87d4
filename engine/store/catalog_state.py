"""The table `catalog_state`: a number that triggers increase with every change of tools, versions and sources."""

from sqlalchemy import text

from engine.store.database import DatabaseAccess

_NUMBER = text("SELECT number FROM catalog_state")


class CatalogState(DatabaseAccess):
    async def number(self) -> int:
        """Raises StoreUnavailableError."""
        return await self._database.number(_NUMBER)

    def number_at_once(self) -> int | None:
        """Like `number`; None if it takes a wait."""
        return self._database.number_at_once(_NUMBER)
