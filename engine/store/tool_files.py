"""Versions that have a file of their own, and go with it."""

from collections.abc import Collection, Iterable, Mapping

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.catalog_files import CATALOG, ids_of_others
from engine.store.database import Database
from engine.store.evidence import forget_evidence
from engine.store.file_references import holder_of_version, release_files
from engine.store.rows.version_rows import make_active, mark_activated, say
from engine.store.tables import sources, tool_versions, tools
from engine.store.tools import erase_tools
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.records import EventType


class ToolFileTable:
    """Handles tools of one origin only."""

    def __init__(self, database: Database, origin: str) -> None:
        self._database = database
        self._origin = origin

    async def foreign(self, tool_ids: Iterable[str]) -> dict[str, str]:
        """Those of these tools that have another origin, with their origin."""
        wanted = frozenset(tool_ids)
        query = select(tools.c.tool_id, tools.c.origin).where(tools.c.removed_at.is_(None), tools.c.origin != self._origin)
        return {tool_id: origin for tool_id, origin in await self._database.rows(query) if tool_id in wanted}

    async def forget(self, gone: Collection[tuple[str, str]], file: str, catalog: str, heads: Mapping[str, str]) -> None:
        """Remove these versions, except those that another catalog has in this file. A tool without a version goes.

        `heads` are the versions to activate if the active one goes.
        """
        if not gone:
            return
        async with self._database.write(alone=CATALOG) as connection:
            kept = await ids_of_others(connection, file, catalog)
            ours = select(tools.c.tool_id).where(tools.c.origin == self._origin, tools.c.removed_at.is_(None))
            known = set(await connection.scalars(ours))
            for tool_id, version in sorted(gone):
                if tool_id in known and f"{tool_id}@{version}" not in kept:
                    await forget_version(connection, tool_id, version, heads.get(tool_id))


async def forget_version(connection: AsyncConnection, tool_id: str, version: str, head: str | None) -> None:
    """Remove a version, or the tool with its last version. If it was active, `head` becomes active."""
    of_tool = tool_versions.c.tool_id == tool_id
    others = select(func.count()).select_from(tool_versions).where(of_tool, tool_versions.c.version != version)
    if not (await connection.execute(others)).scalar_one():
        await erase_tools(connection, (tool_id,))
        return
    await release_files(connection, holder_of_version(tool_id, version))
    await forget_evidence(connection, tool_id, version=version)
    await connection.execute(delete(sources).filter_by(tool_id=tool_id, version=version))
    went = await connection.execute(delete(tool_versions).where(of_tool, tool_versions.c.version == version))
    if went.rowcount:
        await say(connection, tool_id, EventType.TOOL_UPDATED, {"version": version, "removed": True})
    await _activate_another(connection, tool_id, version, head)


async def _activate_another(connection: AsyncConnection, tool_id: str, gone: str, head: str | None) -> None:
    """Activate `head` if it exists, otherwise any version: a tool always has an active version."""
    active = (await connection.execute(select(tools.c.active_version).filter_by(tool_id=tool_id))).scalar_one()
    if active != gone:
        return
    query = select(tool_versions.c.version, tool_versions.c.manifest).filter_by(tool_id=tool_id)
    there = {version: manifest for version, manifest in (await connection.execute(query.order_by(tool_versions.c.version))).all()}
    version = head if head is not None and head in there else max(there)
    await make_active(connection, ToolManifest.model_validate_json(there[version]), before=gone)
    await mark_activated(connection, (tool_id, version))
