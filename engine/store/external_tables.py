"""The table `external_tables`, and the tools that came from each."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.catalog_entries import EXTERNAL_ORIGIN
from engine.store.catalog_files import CATALOG
from engine.store.database import Database
from engine.store.tables import external_tables, sources, tool_versions, tools
from engine.store.tools import collected, erase_tools, put_version, stored_versions
from engine.store.upserts import insert_new
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.external_tables import ExternalTable


class ExternalTableRows:
    """All raise StoreUnavailableError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, source: str) -> ExternalTable | None:
        text = await self._database.scalar(select(external_tables.c.document).where(external_tables.c.source == source))
        return ExternalTable.model_validate_json(text) if text is not None else None

    async def list_all(self) -> tuple[ExternalTable, ...]:
        """By source."""
        texts = await self._database.scalars(select(external_tables.c.document).order_by(external_tables.c.source))
        return tuple(map(ExternalTable.model_validate_json, texts))

    async def taken(self, source: str) -> frozenset[str]:
        """Ids of tools that begin with this name, and are no external table's."""
        is_foreign = ~tools.c.origin.startswith(EXTERNAL_ORIGIN)
        query = select(tools.c.tool_id).where(tools.c.tool_id.startswith(f"{source}:", autoescape=True), is_foreign)
        return frozenset(await self._database.scalars(query.where(tools.c.removed_at.is_(None))))

    async def add(self, table: ExternalTable, entries: Sequence[ToolEntry]) -> bool:
        """A new table with its tools, or nothing where there is one of this name."""
        async with self._database.write(alone=CATALOG) as connection:
            if await connection.scalar(select(external_tables.c.source).where(external_tables.c.source == table.source)) is not None:
                return False
            # Marks of tools that were removed from an earlier table of this name.
            gone = await connection.scalars(select(tools.c.tool_id).where(_of(table.source)))
            await erase_tools(connection, gone.all())
            await insert_new(connection, external_tables, [_row(table)])
            await _replace(connection, table.source, entries)
        return True

    async def renew(self, table: ExternalTable, entries: Sequence[ToolEntry] | None = None) -> bool:
        """What is known of a table, and its tools, where they were fetched; False where it was removed or registered anew meanwhile."""
        is_it = external_tables.c.source == table.source
        async with self._database.write(alone=CATALOG) as connection:
            text = await connection.scalar(select(external_tables.c.document).where(is_it))
            if text is None or ExternalTable.model_validate_json(text).registered_at != table.registered_at:
                return False
            await connection.execute(update(external_tables).where(is_it).values(**_row(table)))
            if entries is not None:
                await _replace(connection, table.source, entries)
            return True

    async def remove(self, source: str) -> int | None:
        """The table with its tools; how many there were, None where there is no such table."""
        async with self._database.write(alone=CATALOG) as connection:
            removed = await connection.execute(delete(external_tables).where(external_tables.c.source == source))
            if not removed.rowcount:
                return None
            found = (await connection.execute(select(tools.c.tool_id, tools.c.removed_at).where(_of(source)))).all()
            await erase_tools(connection, [tool_id for tool_id, _ in found])
            return sum(removed_at is None for _, removed_at in found)


def _of(source: str) -> ColumnElement[bool]:
    return tools.c.origin == f"{EXTERNAL_ORIGIN}{source}"


def _row(table: ExternalTable) -> dict[str, object]:
    return {"source": table.source, "document": table.model_dump_json()}


async def _replace(connection: AsyncConnection, source: str, entries: Sequence[ToolEntry]) -> None:
    """Write what changed, forget what the table does not have any more. What was removed or deactivated here stays so."""
    rows = (await connection.execute(select(tools.c.tool_id, tools.c.removed_at).where(_of(source)))).all()
    there = collected((await connection.execute(stored_versions().where(_of(source)))).all())
    known = {entry.manifest.tool_id: entry for entry in there}
    listed = {entry.manifest.tool_id for entry in entries}
    await erase_tools(connection, [tool_id for tool_id, _ in rows if tool_id not in listed])
    removed = {tool_id for tool_id, removed_at in rows if removed_at is not None}
    for entry in entries:
        manifest = entry.manifest
        before = known.get(manifest.tool_id)
        if manifest.tool_id in removed:
            continue
        if before is not None and before.manifest.version == manifest.version:
            entry = entry.model_copy(update={"manifest": manifest.model_copy(update={"status": before.manifest.status})})
        if entry == before:
            continue
        for table in (tool_versions, sources):
            await connection.execute(delete(table).where(table.c.tool_id == manifest.tool_id, table.c.version != manifest.version))
        await put_version(connection, entry, f"{EXTERNAL_ORIGIN}{source}")
