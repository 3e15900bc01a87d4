"""The table `groups`: tools that are used together."""

from collections.abc import Iterable

from sqlalchemy import delete, select

from engine.store.database import Database
from engine.store.tables import groups
from engine.store.upserts import upsert
from toolagent.contracts.manifest import ToolGroup

__all__ = ["GroupTable"]


class GroupTable:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_all(self) -> tuple[ToolGroup, ...]:
        async with self._database.read() as connection:
            texts = (await connection.execute(select(groups.c.document).order_by(groups.c.group_id))).scalars().all()
        return tuple(map(ToolGroup.model_validate_json, texts))

    async def replace(self, new: Iterable[ToolGroup]) -> None:
        """Make these the groups there are."""
        async with self._database.write() as connection:
            await connection.execute(delete(groups))
            for group in new:
                await upsert(connection, groups, {"group_id": group.group_id, "document": group.model_dump_json()})
