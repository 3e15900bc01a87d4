"""The table `production_repairs`: repairs that failing calls have started, and their outcomes."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import and_, func, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.clock import database_time
from engine.store.database import DatabaseAccess
from engine.store.events import event_row
from engine.store.repair_tables import production_repairs
from engine.store.rows.upserts import insert_new
from engine.store.tables import events, tasks
from toolagent.contracts.making import MakeRequest
from toolagent.contracts.records import Event
from toolagent.contracts.tasks import TaskState
from toolagent_service.contracts.repairs import Meanwhile
from toolagent_service.making.repair_rule import DAY, Earlier

column = production_repairs.c

_LOOKED_AT = 100
"""How many repairs of a tool are read, the newest first."""

_LOST_AFTER = timedelta(hours=1)
"""A repair without a task by then was lost by Temporal, or ended there before its first step."""


@dataclass(frozen=True, slots=True)
class NewRepair:
    """A repair of a version. `attempt` counts from 1. Without a `request` it is only an alert. `event` tells operators."""

    tool_id: str
    version: str
    attempt: int
    reason: str
    event: Event
    meanwhile: Meanwhile = Meanwhile.SERVE
    previous: str | None = None
    request: MakeRequest | None = None


@dataclass(frozen=True, slots=True)
class RepairHistory:
    """The repairs of a tool within a day, and in any case the last one; the newest first. `now` is by the clock of the database."""

    now: datetime
    earlier: tuple[Earlier, ...]


@dataclass(frozen=True, slots=True)
class OpenRepair:
    tool_id: str
    version: str
    task_id: str
    meanwhile: Meanwhile
    previous: str | None


class ProductionRepairs(DatabaseAccess):
    """Writes are idempotent, also across hosts. All methods raise StoreUnavailableError."""

    async def history(self, tool_id: str) -> RepairHistory:
        found = await self._history(tool_id)
        if all(one.opened_at <= found.now and (one.ended_at or found.now) <= found.now for one in found.earlier):
            return found
        # A clock was set back: without this, the pause would last until the clock caught up.
        async with self._database.write(alone=_lock_of(tool_id)) as connection:
            for time in (column.opened_at, column.ended_at):
                late = and_(column.tool_id == tool_id, time > database_time())
                await connection.execute(update(production_repairs).where(late).values({time: database_time()}))
        return await self._history(tool_id)

    async def attempts(self, tool_id: str, version: str) -> int:
        """The highest number of an attempt to repair this version, including alerts."""
        return await self._database.scalar(select(func.max(column.attempt)).filter_by(tool_id=tool_id, version=version)) or 0

    async def open(self, new: NewRepair) -> bool:
        """Record a repair. False if one of the tool is running, or another host was quicker."""
        this = column.tool_id == new.tool_id
        in_the_way = and_(
            this,
            column.ended_at.is_(None) | and_(column.version == new.version, column.attempt >= new.attempt),
        )
        async with self._database.write(alone=_lock_of(new.tool_id)) as connection:
            if (await connection.execute(select(literal(1)).where(in_the_way).limit(1))).first() is not None:
                return False
            at = (await connection.execute(select(database_time()))).scalar_one()
            row = {
                "tool_id": new.tool_id,
                "version": new.version,
                "attempt": new.attempt,
                "task_id": new.request.task_id if new.request else "",
                "reason": new.reason,
                "meanwhile": new.meanwhile.value,
                "previous": new.previous,
                "request": new.request.model_dump_json() if new.request else None,
                "opened_at": at,
                "ended_at": None if new.request else at,
                "outcome": None,
            }
            await insert_new(connection, production_repairs, [row])
            await insert_new(connection, events, [event_row(new.event)])
        return True

    async def unstarted(self) -> tuple[MakeRequest, ...]:
        """Requests of open repairs without a task: their workflows may not have started."""
        known = production_repairs.outerjoin(tasks, tasks.c.task_id == column.task_id)
        query = select(column.request).select_from(known)
        query = query.where(_IS_OPEN, column.request.is_not(None), tasks.c.task_id.is_(None))
        return tuple(MakeRequest.model_validate_json(text) for text in await self._database.scalars(query) if text)

    async def give_up(self, task_id: str | None = None) -> None:
        """End the repair of this task as failed: another task has its id.

        Without an id, end all repairs whose tasks have ended or never appeared.
        """
        async with self._database.write() as connection:
            if task_id is not None:
                await end_repair(connection, task_id, TaskState.FAILED)
                return
            task_id_of = column.task_id
            over = task_id_of.in_(select(tasks.c.task_id).where(tasks.c.ended_at.is_not(None)))
            unknown = task_id_of.not_in(select(tasks.c.task_id))
            lost = and_(unknown, column.opened_at < database_time(-_LOST_AFTER))
            old = and_(_IS_OPEN, or_(over, lost))
            ended = {"ended_at": database_time(), "outcome": TaskState.FAILED.value}
            if (await connection.execute(select(literal(1)).where(old).limit(1))).first() is not None:
                await connection.execute(update(production_repairs).where(old).values(**ended))

    async def under_way(self) -> tuple[OpenRepair, ...]:
        of_it = production_repairs.c
        columns = (of_it.tool_id, of_it.version, of_it.task_id, of_it.meanwhile, of_it.previous)
        rows = await self._database.rows(select(*columns).where(_IS_OPEN).order_by(of_it.opened_at, of_it.tool_id))
        return tuple(OpenRepair(tool, version, task, Meanwhile(meanwhile), previous) for tool, version, task, meanwhile, previous in rows)

    async def _history(self, tool_id: str) -> RepairHistory:
        of_it = select(column.opened_at, column.ended_at, column.task_id).filter_by(tool_id=tool_id)
        async with self._database.read() as connection:
            rows = (await connection.execute(of_it.order_by(column.opened_at.desc()).limit(_LOOKED_AT))).all()
            now = datetime.fromisoformat((await connection.execute(select(database_time()))).scalar_one())
        found = [_earlier(opened, ended, task_id) for opened, ended, task_id in rows]
        return RepairHistory(
            now, tuple(one for place, one in enumerate(found) if place == 0 or one.ended_at is None or one.opened_at > now - DAY)
        )


async def end_repair(connection: AsyncConnection, task_id: str, outcome: TaskState) -> None:
    """End the repair of a task, if it is one. From this commit on, calls go on."""
    this = and_(_IS_OPEN, column.task_id == task_id)
    # Look first: most tasks are no such repairs, and a write would invalidate all caches.
    if (await connection.execute(select(column.opened_at).where(this))).first() is not None:
        ended = {"ended_at": database_time(), "outcome": outcome.value}
        await connection.execute(update(production_repairs).where(this).values(**ended))


_IS_OPEN = and_(column.ended_at.is_(None), column.task_id != "")


def _lock_of(tool_id: str) -> str:
    return f"repairs of {tool_id}"


def _earlier(opened: str, ended: str | None, task_id: str) -> Earlier:
    return Earlier(datetime.fromisoformat(opened), datetime.fromisoformat(ended) if ended else None, is_repair=bool(task_id))
