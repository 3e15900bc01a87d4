"""The table `catalog_state`: a number that grows with every change of tools, versions and sources. The database itself counts."""

from sqlalchemy import select

from engine.store.database import DatabaseAccess
from engine.store.tables import catalog_state

_NUMBER = select(catalog_state.c.number)


class CatalogState(DatabaseAccess):
    async def number(self) -> int:
        """Raises StoreUnavailableError."""
        (number,) = await self._database.scalars(_NUMBER)
        return number
