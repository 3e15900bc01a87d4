"""The table `evidence`: why a version may be called; kept as long as the version."""

from collections.abc import Sequence

from pydantic import TypeAdapter
from sqlalchemy import and_, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.database import DatabaseAccess
from engine.store.rows.upserts import upsert
from engine.store.tables import evidence, sources, tool_versions, tools
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import Evidence
from toolagent.contracts.manifest import ToolManifest, ToolStatus
from toolagent.contracts.sources import ToolSource

column = evidence.c

_TOLD = select(tool_versions.c.tool_id, tool_versions.c.version, tool_versions.c.manifest).join(
    evidence, and_(column.tool_id == tool_versions.c.tool_id, column.version == tool_versions.c.version)
)
"""Versions that have evidence."""

_SOURCES = select(sources.c.tool_id, sources.c.version, sources.c.source).order_by(sources.c.position)
_SOURCE: TypeAdapter[ToolSource] = TypeAdapter(ToolSource)


class EvidenceTable(DatabaseAccess):
    """One document per version; the last write stands."""

    async def get(self, tool_id: str, version: str) -> Evidence | None:
        return (await self.of_tool(tool_id)).get(version)

    async def of_tool(self, tool_id: str) -> dict[str, Evidence]:
        """Evidence by version. Versions that no task made have none."""
        query = select(column.version, column.document).filter_by(tool_id=tool_id)
        rows = await self._database.rows(query)
        return {version: Evidence.model_validate_json(document) for version, document in rows}

    async def callable_of(self, task_id: str) -> dict[str, str]:
        """By tool id, the active and callable versions that the task made."""
        columns = (column.tool_id, column.version, tool_versions.c.manifest)
        written = and_(tool_versions.c.tool_id == column.tool_id, tool_versions.c.version == column.version)
        active = and_(tools.c.tool_id == column.tool_id, tools.c.active_version == column.version, tools.c.removed_at.is_(None))
        query = select(*columns).join(tool_versions, written).join(tools, active).where(column.task_id == task_id)
        rows = await self._database.rows(query.order_by(column.tool_id))
        found = {tool_id: (version, ToolManifest.model_validate_json(manifest)) for tool_id, version, manifest in rows}
        return {tool_id: version for tool_id, (version, manifest) in found.items() if manifest.status is ToolStatus.ACTIVE}


async def write_evidence(connection: AsyncConnection, tool_id: str, version: str, found: Evidence) -> None:
    row = {"tool_id": tool_id, "version": version, "task_id": found.task_id, "document": found.model_dump_json()}
    await upsert(connection, evidence, row)


async def is_in_the_way(connection: AsyncConnection, manifest: ToolManifest, task_id: str, mends: str | None) -> bool:
    """Whether something prevents the task from registering this version: see `ToolTable.put_made`."""
    tool_id = manifest.tool_id
    known = select(tools.c.active_version).where(tools.c.tool_id == tool_id, tools.c.removed_at.is_(None))
    active = await connection.scalar(known)
    rows = (await connection.execute(select(column.version, column.task_id).filter_by(tool_id=tool_id))).all()
    makers = {version: maker for version, maker in rows}
    if mends is None:
        return active is not None and task_id not in makers.values()
    there = select(tool_versions.c.version).filter_by(tool_id=tool_id)
    taken = {*await connection.scalars(there), *makers}
    is_taken = manifest.version in taken and makers.get(manifest.version) != task_id
    return active is None or is_taken or (active != mends and makers.get(active) != task_id)


async def forget_evidence(connection: AsyncConnection, *tool_ids: str, version: str | None = None) -> None:
    """Remove the evidence of these tools, or of one version of them."""
    statement = delete(evidence).where(column.tool_id.in_(tool_ids))
    await connection.execute(statement if version is None else statement.where(column.version == version))


async def forget_overtaken(connection: AsyncConnection, new: Sequence[ToolEntry]) -> None:
    """Remove the evidence of versions that are about to get another manifest or other sources: it was about the old ones.

    A changed status alone keeps the evidence: it does not make another version.
    """
    tool_ids = sorted({entry.manifest.tool_id for entry in new})
    versions = (await connection.execute(_TOLD.where(column.tool_id.in_(tool_ids)))).all()
    if not versions:
        return
    stored = {(tool_id, version): ToolManifest.model_validate_json(manifest) for tool_id, version, manifest in versions}
    stored_sources: dict[tuple[str, str], list[ToolSource]] = {}
    for tool_id, version, text in (await connection.execute(_SOURCES.where(sources.c.tool_id.in_(tool_ids)))).all():
        stored_sources.setdefault((tool_id, version), []).append(_SOURCE.validate_json(text))
    for entry in new:
        key = (entry.manifest.tool_id, entry.manifest.version)
        if key in stored:
            as_it_is = stored[key].model_copy(update={"status": entry.manifest.status})
            if as_it_is != entry.manifest or stored_sources.get(key, []) != [*entry.sources]:
                await forget_evidence(connection, key[0], version=key[1])
