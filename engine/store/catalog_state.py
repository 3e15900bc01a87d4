"""The table `catalog_state`: a number that grows with every change of tools, versions and sources. The database itself counts."""

from sqlalchemy import text

from engine.store.database import Database

_NUMBER = text("SELECT number FROM catalog_state")


class CatalogState:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def number(self) -> int:
        """Raises StoreUnavailableError."""
        return await self._database.number(_NUMBER)
