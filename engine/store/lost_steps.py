"""The table `lost_steps`: how often a worker died or froze in a step of a call."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta

from sqlalchemy import delete, select

from engine.store.clock import now, timestamp
from engine.store.database import DatabaseAccess
from engine.store.rows.upserts import insert_for
from engine.store.tables import lost_steps

_KEPT = timedelta(days=7)
"""Longer than a call waits for its next attempt."""


class LostStepTable(DatabaseAccess):
    async def add(self, steps: Iterable[str]) -> None:
        """Count one more loss of each step, and remove old counts."""
        counted, at = Counter(steps), now()
        if not counted:
            return
        async with self._database.write() as connection:
            await connection.execute(delete(lost_steps).where(lost_steps.c.lost_at < timestamp(at - _KEPT)))
            for step, times in sorted(counted.items()):
                statement = insert_for(connection, lost_steps).values(step=step, times=times, lost_at=timestamp(at))
                changed = {"times": lost_steps.c.times + times, "lost_at": timestamp(at)}
                await connection.execute(statement.on_conflict_do_update(index_elements=["step"], set_=changed))

    async def counts(self) -> Mapping[str, int]:
        return {step: times for step, times in await self._database.rows(select(lost_steps.c.step, lost_steps.c.times))}
