"""The table `containers`: the containers of tools."""

from collections.abc import Collection, Sequence

from sqlalchemy import bindparam, delete, select

from engine.store.catalog_files import CATALOG
from engine.store.database import Database
from engine.store.tables import containers
from engine.store.upserts import upsert_all
from toolagent_service.contracts.containers import ContainerInfo, ContainerStatus

__all__ = ["ContainerTable"]

_ONE = delete(containers).where(containers.c.container_id == bindparam("of_container"))

_OTHERS = delete(containers).where(
    containers.c.tool_id == bindparam("of_tool"),
    containers.c.container_id != bindparam("but"),
    containers.c.status == ContainerStatus.DESTROYED.value,
    containers.c.raw.is_(None),
)


class ContainerTable:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_all(self) -> tuple[ContainerInfo, ...]:
        return tuple(container for container, _ in await self.list_stored())

    async def list_stored(self) -> tuple[tuple[ContainerInfo, str | None], ...]:
        """Each with its entry in the file, as JSON text, if it came from one."""
        rows = await self._database.rows(select(containers.c.document, containers.c.raw).order_by(containers.c.container_id))
        return tuple((ContainerInfo.model_validate_json(document), raw) for document, raw in rows)

    async def note(self, container: ContainerInfo) -> None:
        """What is known of one that this service made; an entry of the file stays as it is written there.

        Of those that are destroyed only the last of each tool is kept: they come and go.
        """
        row = {
            "container_id": container.container_id,
            "tool_id": container.tool_id,
            "status": container.status.value,
            "document": container.model_dump_json(),
        }
        async with self._database.write() as connection:
            await upsert_all(connection, containers, [row])
            if container.status is ContainerStatus.DESTROYED:
                await connection.execute(_OTHERS, {"of_tool": container.tool_id, "but": container.container_id})

    async def bring_in(self, new: Sequence[tuple[ContainerInfo, str]], gone: Collection[str]) -> None:
        """Write these, each with its entry in the file, and forget those."""
        rows = [
            {
                "container_id": container.container_id,
                "tool_id": container.tool_id,
                "status": container.status.value,
                "document": container.model_dump_json(),
                "raw": raw,
            }
            for container, raw in new
        ]
        async with self._database.write(alone=CATALOG) as connection:
            if gone:
                await connection.execute(_ONE, [{"of_container": container_id} for container_id in gone])
            await upsert_all(connection, containers, rows)
