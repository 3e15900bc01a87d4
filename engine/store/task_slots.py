"""Slots of running tasks: a limited number at once, in the order of creation."""

from datetime import timedelta

from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.clock import database_time, timestamp
from engine.store.database import DatabaseAccess
from engine.store.tables import tasks
from toolagent.contracts.tasks import TaskState
from toolagent.core.failures import TaskEndedError, UnknownTaskError

column = tasks.c

_SLOTS = "slots of tasks"
_SILENT = timedelta(seconds=60)
"""A task that has not asked for so long loses its turn: its workflow was terminated, and others must not wait behind it."""

_PAUSE = timedelta(seconds=0.5)
_LONGEST_PAUSE = _SILENT / 2


class TaskSlots(DatabaseAccess):
    """Columns `asked_at` and `slot_at` of the table `tasks`."""

    async def claim_slot(self, task_id: str, most: int, host: str | None = None) -> bool:
        """Take one of at most `most` slots. True: the task is `running` on that host. A running task may ask again.

        After False, ask again after `pause`: a task that is silent for a minute loses its turn. Raises TaskEndedError, UnknownTaskError.
        """
        async with self._database.write(alone=_SLOTS) as connection:
            # This locks the row: an end that comes now waits, or is seen below.
            await connection.execute(update(tasks).filter_by(task_id=task_id).values(asked_at=database_time()))
            asked = select(column.slot_at, column.created_at, column.ended_at, column.status).filter_by(task_id=task_id)
            row = (await connection.execute(asked)).one_or_none()
            if row is None:
                raise UnknownTaskError(task_id)
            slot_at, created_at, ended_at, status = row
            if ended_at is not None:
                raise TaskEndedError(task_id, status)
            if slot_at is not None:
                await connection.execute(update(tasks).filter_by(task_id=task_id).values(host=host))
                return True
            if await _before(connection, task_id, created_at) >= most:
                return False
            moment = timestamp()
            begun = {"slot_at": moment, "started_at": func.coalesce(column.started_at, moment), "status": TaskState.RUNNING.value}
            await connection.execute(update(tasks).filter_by(task_id=task_id).values(**begun, host=host))
            return True

    async def pause(self, task_id: str) -> timedelta:
        """How long a waiting task waits before it asks again. Longer behind more tasks, to limit the load."""
        created_at = await self._database.scalar(select(column.created_at).filter_by(task_id=task_id))
        waiting = (column.ended_at.is_(None), column.slot_at.is_(None), _older(task_id, created_at or ""), _HEARD)
        ahead = await self._database.scalar(select(func.count()).select_from(tasks).where(*waiting)) or 0
        return min(_PAUSE * (ahead + 1), _LONGEST_PAUSE)


async def _before(connection: AsyncConnection, task_id: str, created_at: str) -> int:
    """How many tasks have a slot, or come first."""
    counted = or_(column.slot_at.is_not(None), and_(_older(task_id, created_at), _HEARD))
    query = select(func.count()).select_from(tasks).where(column.ended_at.is_(None), column.task_id != task_id, counted)
    return (await connection.execute(query)).scalar_one()


def _older(task_id: str, created_at: str) -> ColumnElement[bool]:
    return or_(column.created_at < created_at, and_(column.created_at == created_at, column.task_id < task_id))


_HEARD = func.coalesce(column.asked_at, column.created_at) > database_time(-_SILENT)
