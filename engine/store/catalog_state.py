"""The table `catalog_state`: a number that triggers increase with every change of tools, versions and sources."""

from sqlalchemy import select

from engine.store.database import DatabaseAccess
from engine.store.tables import catalog_state

_NUMBER = select(catalog_state.c.number)


class CatalogState(DatabaseAccess):
    async def number(self) -> int:
        """Raises StoreUnavailableError."""
        (number,) = await self._database.scalars(_NUMBER)
        return number
