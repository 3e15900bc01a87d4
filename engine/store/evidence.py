"""The table `evidence`: why a version may be called, kept as long as the version."""

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.database import Database
from engine.store.tables import evidence, tool_versions, tools
from engine.store.upserts import upsert
from toolagent.contracts.making import Evidence
from toolagent.contracts.manifest import ToolManifest

__all__ = ["EvidenceTable", "forget_evidence", "is_in_the_way", "write_evidence"]


class EvidenceTable:
    """One document a version; of two that were written the last stands."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, tool_id: str, version: str, found: Evidence) -> None:
        async with self._database.write() as connection:
            await write_evidence(connection, tool_id, version, found)

    async def get(self, tool_id: str, version: str) -> Evidence | None:
        return (await self.of_tool(tool_id)).get(version)

    async def of_tool(self, tool_id: str) -> dict[str, Evidence]:
        """By version; versions that no task made have none."""
        query = select(evidence.c.version, evidence.c.document).where(evidence.c.tool_id == tool_id)
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
        return {version: Evidence.model_validate_json(document) for version, document in rows}


async def write_evidence(connection: AsyncConnection, tool_id: str, version: str, found: Evidence) -> None:
    row = {"tool_id": tool_id, "version": version, "task_id": found.task_id, "document": found.model_dump_json()}
    await upsert(connection, evidence, row)


async def is_in_the_way(connection: AsyncConnection, manifest: ToolManifest, task_id: str, mends: str | None) -> bool:
    """Whether the task may not register this version: see `ToolTable.put_made`."""
    tool_id = manifest.tool_id
    known = select(tools.c.active_version).where(tools.c.tool_id == tool_id, tools.c.removed_at.is_(None))
    active = (await connection.execute(known)).scalar_one_or_none()
    rows = (await connection.execute(select(evidence.c.version, evidence.c.task_id).where(evidence.c.tool_id == tool_id))).all()
    makers = {version: maker for version, maker in rows}
    if mends is None:
        return active is not None and task_id not in makers.values()
    there = select(tool_versions.c.version).where(tool_versions.c.tool_id == tool_id)
    taken = {*(await connection.execute(there)).scalars(), *makers}
    is_taken = manifest.version in taken and makers.get(manifest.version) != task_id
    return active is None or is_taken or (active != mends and makers.get(active) != task_id)


async def forget_evidence(connection: AsyncConnection, *tool_ids: str, version: str | None = None) -> None:
    """With the versions of these tools, or with one version: another one of the same name is another one."""
    statement = delete(evidence).where(evidence.c.tool_id.in_(tool_ids))
    await connection.execute(statement if version is None else statement.where(evidence.c.version == version))
