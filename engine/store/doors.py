"""The table `doors`: the processes that answer HTTP, and which of them are alive.

Times are by the clock of the database.
"""

import time
from datetime import timedelta

from pydantic import ValidationError
from sqlalchemy import ColumnElement, and_, delete, false, literal, not_, select

from engine.store.clock import database_time
from engine.store.database import Database
from engine.store.rows.upserts import upsertion
from engine.store.tables import doors
from toolagent.contracts.lanes import Lane, LaneFigures
from toolagent_service.calls.lanes import lane_id


class DoorTable:
    """A door without a heartbeat for `lease_s` seconds is gone. All methods raise StoreUnavailableError.

    A process counts its own doors as alive. After a time without the database, or without CPU time, it counts all doors as alive for
    another lease, because their heartbeats may have been lost too.
    """

    def __init__(self, database: Database, lease_s: float) -> None:
        self._database, self._lease = database, timedelta(seconds=lease_s)
        self._own: set[str] = set()
        self._looked_at: float | None = None
        self._blind_until = 0.0

    async def beat(self, door: str, host: str | None, figures: LaneFigures) -> None:
        """Record a heartbeat and the figures of the lane."""
        at = database_time()
        row = {"door": door, "host": host, "figures": figures.model_dump_json(), "started_at": at, "seen_at": at}
        async with self._database.write_once() as connection:
            await connection.execute(upsertion(connection, doors, row, once=("host", "started_at")))
        self._own.add(door)
        self._note_sight()

    async def look(self) -> None:
        """Note that the database answers, in a process that judges doors but is none."""
        await self._database.scalar(select(literal(1)))
        self._note_sight()

    async def leave(self, door: str) -> None:
        """Remove a door that is closed or known to be gone."""
        await self._database.change(delete(doors).filter_by(door=door))
        self._own.discard(door)

    async def alive(self) -> tuple[Lane, ...]:
        """Living doors, by id."""
        async with self._database.read() as connection:  # judged after the wait for it, which may have been long
            query = select(doors).where(not_(self._is_late())).order_by(doors.c.door)
            rows = (await connection.execute(query)).mappings().all()
        return tuple(Lane.model_validate({**row, "workflow_id": lane_id(row["door"]), "figures": _figures(row["figures"])}) for row in rows)

    async def gone(self, host: str | None, own: str) -> tuple[str, ...]:
        """Doors without a lease, and doors of earlier processes of this host, which cannot be alive beside us."""
        async with self._database.read() as connection:
            rows = (await connection.execute(select(doors.c.door, doors.c.host, self._is_late()))).all()
        return tuple(door for door, at, late in rows if door != own and (late or (host is not None and at == host)))

    def _note_sight(self) -> None:
        if self._was_blind:
            self._blind_until = time.monotonic() + self._lease.total_seconds()
        self._looked_at = time.monotonic()

    @property
    def _was_blind(self) -> bool:
        return self._looked_at is not None and time.monotonic() - self._looked_at > self._lease.total_seconds() / 2

    def _is_late(self) -> ColumnElement[bool]:
        if self._was_blind or time.monotonic() < self._blind_until:
            return false()
        return and_(doors.c.seen_at < database_time(-self._lease), doors.c.door.not_in(self._own))


def _figures(text: str) -> LaneFigures:
    """Zeros for a door of another version with other figures: it is alive all the same."""
    try:
        return LaneFigures.model_validate_json(text)
    except ValidationError:
        return LaneFigures()
