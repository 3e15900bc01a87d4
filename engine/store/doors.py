"""The table `doors`: which processes answer HTTP, and which of them are alive. All times are the database's own."""

from datetime import timedelta

from sqlalchemy import delete, select

from engine.store.database import Database
from engine.store.hosts import database_time
from engine.store.tables import doors
from engine.store.upserts import insert_for

__all__ = ["DoorTable"]


class DoorTable:
    """A door that was not heard of for `lease_s` seconds is gone, and does not come back under its id. All raise StoreUnavailableError."""

    def __init__(self, database: Database, lease_s: float) -> None:
        self._database, self._lease = database, timedelta(seconds=lease_s)

    async def beat(self, door: str, host: str | None) -> None:
        """Say that it is alive."""
        async with self._database.write_once() as connection:
            at = database_time(connection)
            insert = insert_for(connection, doors).values(door=door, host=host, started_at=at, seen_at=at)
            await connection.execute(insert.on_conflict_do_update(index_elements=["door"], set_={"seen_at": at}))

    async def leave(self, door: str) -> None:
        """It is closed, or known to be gone."""
        async with self._database.write_once() as connection:
            await connection.execute(delete(doors).where(doors.c.door == door))

    async def alive(self) -> tuple[str, ...]:
        async with self._database.read() as connection:
            query = select(doors.c.door).where(doors.c.seen_at >= database_time(connection, -self._lease))
            return tuple((await connection.execute(query)).scalars())

    async def gone(self, host: str | None, own: str) -> tuple[str, ...]:
        """Doors without a lease; and those of this host in an earlier life of its process, which cannot be alive beside us."""
        async with self._database.read() as connection:
            rows = (
                await connection.execute(select(doors.c.door, doors.c.host, doors.c.seen_at < database_time(connection, -self._lease)))
            ).all()
        return tuple(door for door, at, late in rows if door != own and (late or (host is not None and at == host)))
