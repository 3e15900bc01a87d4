"""The table `evidence`: why a version may be called, kept as long as the version."""

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.database import Database
from engine.store.tables import evidence
from engine.store.upserts import insert_new, upsert
from toolagent.contracts.making import Evidence

__all__ = ["EvidenceTable", "forget_evidence"]


class EvidenceTable:
    """One document a version; of two that were written the last stands."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, tool_id: str, version: str, found: Evidence) -> None:
        row = {"tool_id": tool_id, "version": version, "task_id": found.task_id, "document": found.model_dump_json()}
        async with self._database.write() as connection:
            await upsert(connection, evidence, row)

    async def claim(self, tool_id: str, version: str, found: Evidence) -> bool:
        """`put`, unless there is one of another task: of two that would take the same version one gets it. Whether it was put."""
        row = {"tool_id": tool_id, "version": version, "task_id": found.task_id, "document": found.model_dump_json()}
        query = select(evidence.c.task_id).where(evidence.c.tool_id == tool_id, evidence.c.version == version)
        async with self._database.write() as connection:
            await insert_new(connection, evidence, (row,))
            if (await connection.execute(query)).scalar_one() != found.task_id:
                return False
            await upsert(connection, evidence, row)
        return True

    async def get(self, tool_id: str, version: str) -> Evidence | None:
        return (await self.of_tool(tool_id)).get(version)

    async def of_tool(self, tool_id: str) -> dict[str, Evidence]:
        """By version; versions that no task made have none."""
        query = select(evidence.c.version, evidence.c.document).where(evidence.c.tool_id == tool_id)
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
        return {version: Evidence.model_validate_json(document) for version, document in rows}


async def forget_evidence(connection: AsyncConnection, *tool_ids: str, version: str | None = None) -> None:
    """With the versions of these tools, or with one version: another one of the same name is another one."""
    statement = delete(evidence).where(evidence.c.tool_id.in_(tool_ids))
    await connection.execute(statement if version is None else statement.where(evidence.c.version == version))
