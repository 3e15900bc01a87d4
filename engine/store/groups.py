"""The table `groups`: tools that are used together."""

from collections.abc import Iterable

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.catalog_files import CATALOG, CatalogDocuments
from engine.store.database import Database
from engine.store.rows.upserts import upsert_all
from engine.store.tables import evidence, groups, tools
from toolagent.contracts.manifest import ToolGroup


class GroupTable(CatalogDocuments[ToolGroup]):
    def __init__(self, database: Database) -> None:
        super().__init__(database, ToolGroup, groups, "group_id")
        self._texts: tuple[str, ...] = ()
        self._lived: tuple[ToolGroup, ...] = ()

    async def get(self, group_id: str) -> ToolGroup | None:
        return await self._database.document(ToolGroup, select(groups.c.document).filter_by(group_id=group_id))

    async def with_lifecycle(self) -> tuple[ToolGroup, ...]:
        """The groups with a lifecycle. Parsed again only if they changed."""
        texts = tuple(await self._database.scalars(select(groups.c.document).where(groups.c.document.contains('"lifecycle":true'))))
        if texts != self._texts:
            self._texts, self._lived = texts, tuple(map(ToolGroup.model_validate_json, texts))
        return tuple(group for group in self._lived if group.lifecycle)

    async def replace(self, new: Iterable[ToolGroup]) -> None:
        """Replace all groups by these."""
        rows = [{**self.row(group), "raw": None} for group in new]
        async with self._database.write(alone=CATALOG) as connection:
            await connection.execute(delete(groups))
            await upsert_all(connection, groups, rows)


async def is_anothers_group(connection: AsyncConnection, group_id: str, task_id: str) -> bool:
    """Whether this group comes from a file, or has an existing tool that the task did not make."""
    row = (await connection.execute(select(groups.c.document, groups.c.raw).filter_by(group_id=group_id))).one_or_none()
    if row is None or row.raw is not None:
        return row is not None
    made = select(evidence.c.tool_id).filter_by(task_id=task_id)
    held = tools.c.tool_id.in_(ToolGroup.model_validate_json(row.document).tool_ids)
    others = select(tools.c.tool_id).where(held, tools.c.removed_at.is_(None), tools.c.tool_id.not_in(made)).limit(1)
    return (await connection.execute(others)).first() is not None


async def write_group(connection: AsyncConnection, group: ToolGroup) -> None:
    """Write the group, in place of any earlier one."""
    await upsert_all(connection, groups, [{"group_id": group.group_id, "document": group.model_dump_json(), "raw": None}])
