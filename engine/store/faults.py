"""The table `faults`: what the last import of the catalog could not use."""

from collections.abc import Sequence

from sqlalchemy import delete, insert, select

from engine.store.database import Database
from engine.store.tables import faults
from toolagent.contracts.records import CatalogFault

__all__ = ["FaultTable"]


class FaultTable:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_all(self) -> tuple[CatalogFault, ...]:
        async with self._database.read() as connection:
            rows = (await connection.execute(select(faults).order_by(faults.c.position))).mappings().all()
        return tuple(map(CatalogFault.model_validate, rows))

    async def replace(self, found: Sequence[CatalogFault]) -> None:
        async with self._database.write() as connection:
            await connection.execute(delete(faults))
            rows = [{"position": position, **fault.model_dump()} for position, fault in enumerate(found)]
            if rows:
                await connection.execute(insert(faults), rows)
