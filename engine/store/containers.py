"""The table `containers`: the containers of tools."""

from sqlalchemy import bindparam, delete

from engine.store.catalog_files import CatalogDocuments
from engine.store.database import Database
from engine.store.rows.upserts import upsert
from engine.store.tables import containers
from toolagent_service.contracts.containers import ContainerInfo, ContainerStatus

_OTHERS = delete(containers).where(
    containers.c.tool_id == bindparam("of_tool"),
    containers.c.container_id != bindparam("but"),
    containers.c.status == ContainerStatus.DESTROYED.value,
    containers.c.raw.is_(None),
)


class ContainerTable(CatalogDocuments[ContainerInfo]):
    def __init__(self, database: Database) -> None:
        super().__init__(database, ContainerInfo, containers, "container_id")

    async def note(self, container: ContainerInfo) -> None:
        """Write what is known of a container that this service made. The entry of the catalog file stays.

        Of the destroyed containers of a tool, only the last is kept.
        """
        async with self._database.write() as connection:
            await upsert(connection, containers, self.row(container))
            if container.status is ContainerStatus.DESTROYED:
                await connection.execute(_OTHERS, {"of_tool": container.tool_id, "but": container.container_id})

    def row(self, entry: ContainerInfo) -> dict[str, object]:
        return {**super().row(entry), "tool_id": entry.tool_id, "status": entry.status.value}
