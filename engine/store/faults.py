"""The table `faults`: what the last import of the catalog could not use."""

import hashlib
from collections.abc import Sequence

from sqlalchemy import delete, insert, select

from engine.store.catalog_files import CATALOG
from engine.store.clock import now
from engine.store.database import DatabaseAccess
from engine.store.events import event_row
from engine.store.rows.upserts import insert_new
from engine.store.tables import events, faults
from toolagent.contracts.records import CatalogFault, Event, EventType


class FaultTable(DatabaseAccess):
    """Faults by catalog, which is the id of the host that owns the data folder."""

    async def list_all(self) -> tuple[CatalogFault, ...]:
        """The faults of all catalogs; one that several catalogs have appears once."""
        rows = await self._database.mappings(select(faults).order_by(faults.c.catalog, faults.c.position))
        return tuple(dict.fromkeys(map(CatalogFault.model_validate, rows)))

    async def replace(self, found: Sequence[CatalogFault], catalog: str = "") -> None:
        """Make these the faults of one catalog."""
        async with self._database.write(alone=CATALOG) as connection:
            await connection.execute(delete(faults).filter_by(catalog=catalog))
            rows = [{"catalog": catalog, "position": position, **fault.model_dump()} for position, fault in enumerate(found)]
            if rows:
                await connection.execute(insert(faults), rows)
            await insert_new(connection, events, [event_row(_event(fault)) for fault in found])


def _event(fault: CatalogFault) -> Event:
    """The same fault at the next start is the same event. The tool, if known, is in the details."""
    mark = hashlib.sha256(fault.model_dump_json().encode()).hexdigest()[:32]
    return Event(
        event_id=f"load_error:{mark}", event_type=EventType.LOAD_ERROR, tool_id="", at=now(), details=fault.model_dump(mode="json")
    )
