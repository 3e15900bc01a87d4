"""The table `external_tables`, and the tools of each external table."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, bindparam, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.catalog_entries import EXTERNAL_ORIGIN
from engine.store.catalog_files import CATALOG
from engine.store.database import DatabaseAccess
from engine.store.rows.upserts import insert_new
from engine.store.rows.version_rows import NewVersion, put_versions
from engine.store.tables import external_tables, sources, tool_versions, tools
from engine.store.tools import collected, erase_tools, stored_versions
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.external_tables import ExternalTable
from toolagent.contracts.manifest import ToolManifest

_AT_ONCE = 100
"""Tools per transaction: SQLite has one writer, and calls wait for it."""

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class ExternalTableRows(DatabaseAccess):
    """All raise StoreUnavailableError."""

    async def get(self, source: str) -> ExternalTable | None:
        return await self._database.document(ExternalTable, select(external_tables.c.document).filter_by(source=source))

    async def list_all(self) -> tuple[ExternalTable, ...]:
        """By source."""
        texts = await self._database.scalars(select(external_tables.c.document).order_by(external_tables.c.source))
        return tuple(map(ExternalTable.model_validate_json, texts))

    async def taken(self, source: str) -> frozenset[str]:
        """Ids that begin with this name and belong to no external table."""
        is_foreign = ~tools.c.origin.startswith(EXTERNAL_ORIGIN)
        query = select(tools.c.tool_id).where(tools.c.tool_id.startswith(f"{source}:", autoescape=True), is_foreign)
        return frozenset(await self._database.scalars(query.where(tools.c.removed_at.is_(None))))

    async def add(self, table: ExternalTable, entries: Sequence[ToolEntry]) -> bool:
        """Add a table with its tools. False if there is one of this name."""
        async with self._database.write(alone=CATALOG) as connection:
            if await _is_there(connection, table.source):
                return False
            # Remove the marks of tools of an earlier table of this name.
            gone = await connection.scalars(select(tools.c.tool_id).where(_of(table.source)))
            await erase_tools(connection, gone.all())
            # If the process dies before the tools are written, the table is due at once.
            await insert_new(connection, external_tables, [_row(table.model_copy(update={"tools": 0, "attempted_at": _NEVER}))])
        await self.renew(table, entries)
        return True

    async def renew(self, table: ExternalTable, entries: Sequence[ToolEntry] | None = None) -> bool:
        """Update a table, and first its tools if they were fetched. False if it was removed or registered anew meanwhile."""
        if entries is not None and not await self._replace(table, entries):
            return False
        async with self._database.write(alone=CATALOG) as connection:
            if not await _is_still(connection, table):
                return False
            await connection.execute(update(external_tables).filter_by(source=table.source).values(**_row(table)))
            return True

    async def _replace(self, table: ExternalTable, entries: Sequence[ToolEntry]) -> bool:
        """Remove tools that the table no longer lists, and write changed ones. False if it is another registration meanwhile."""
        source = table.source
        listed = {entry.manifest.tool_id for entry in entries}
        there = await self._database.scalars(select(tools.c.tool_id).where(_of(source)))
        gone = [tool_id for tool_id in there if tool_id not in listed]
        for at in range(0, max(len(gone), len(entries)), _AT_ONCE):
            async with self._database.write(alone=CATALOG) as connection:
                if not await _is_still(connection, table):
                    return False
                await erase_tools(connection, gone[at : at + _AT_ONCE])
                await _bring_in(connection, source, entries[at : at + _AT_ONCE])
        return True

    async def remove(self, source: str) -> int | None:
        """Remove the table with its tools. Returns the number of tools, None if there is no such table."""
        async with self._database.write(alone=CATALOG) as connection:
            removed = await connection.execute(delete(external_tables).filter_by(source=source))
            if not removed.rowcount:
                return None
            found = (await connection.execute(select(tools.c.tool_id, tools.c.removed_at).where(_of(source)))).all()
            await erase_tools(connection, [tool_id for tool_id, _ in found])
            return sum(removed_at is None for _, removed_at in found)


def _of(source: str) -> ColumnElement[bool]:
    return tools.c.origin == f"{EXTERNAL_ORIGIN}{source}"


def _row(table: ExternalTable) -> dict[str, object]:
    return {"source": table.source, "document": table.model_dump_json()}


async def _is_there(connection: AsyncConnection, source: str) -> bool:
    return await connection.scalar(select(external_tables.c.source).filter_by(source=source)) is not None


async def _is_still(connection: AsyncConnection, table: ExternalTable) -> bool:
    """Whether the same registration still exists."""
    text = await connection.scalar(select(external_tables.c.document).filter_by(source=table.source))
    return text is not None and ExternalTable.model_validate_json(text).registered_at == table.registered_at


async def _bring_in(connection: AsyncConnection, source: str, entries: Sequence[ToolEntry]) -> None:
    """Write changed tools. Removals and decisions made here stay."""
    ids = [entry.manifest.tool_id for entry in entries]
    removed = set(
        await connection.scalars(select(tools.c.tool_id).where(_of(source), tools.c.tool_id.in_(ids), tools.c.removed_at.is_not(None)))
    )
    there = collected((await connection.execute(stored_versions().where(_of(source), tools.c.tool_id.in_(ids)))).all())
    known = {entry.manifest.tool_id: entry for entry in there}
    columns = select(tool_versions.c.tool_id, tool_versions.c.version, tool_versions.c.raw)
    raws = {(tool_id, version): raw for tool_id, version, raw in await connection.execute(columns.where(tool_versions.c.tool_id.in_(ids)))}
    changed: list[NewVersion] = []
    for entry in entries:
        before = known.get(entry.manifest.tool_id)
        raw = before and raws.get((before.manifest.tool_id, before.manifest.version))
        new = NewVersion(_as_decided(entry, before, raw), entry.manifest.model_dump_json(by_alias=True))
        if entry.manifest.tool_id not in removed and (new.entry, new.raw) != (before, raw):
            changed.append(new)
    await _write(connection, changed, known.keys(), f"{EXTERNAL_ORIGIN}{source}")


def _as_decided(entry: ToolEntry, before: ToolEntry | None, raw: str | None) -> ToolEntry:
    """The entry with its stored status, if that was changed here after the table set it."""
    if before is None:
        return entry
    said = ToolManifest.model_validate_json(raw) if raw else entry.manifest
    if before.manifest.status is said.status:
        return entry
    return entry.model_copy(update={"manifest": entry.manifest.model_copy(update={"status": before.manifest.status})})


async def _write(connection: AsyncConnection, new: Sequence[NewVersion], known: Collection[str], origin: str) -> None:
    """Write these as the only versions of their tools."""
    if not new:
        return
    for statement in _OTHER_VERSIONS:
        await connection.execute(statement, [{"of_tool": one.manifest.tool_id, "but": one.manifest.version} for one in new])
    await put_versions(connection, new, origin, known)


_OTHER_VERSIONS = tuple(
    delete(table).where(table.c.tool_id == bindparam("of_tool"), table.c.version != bindparam("but")) for table in (tool_versions, sources)
)
