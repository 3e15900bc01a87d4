"""The table `tasks`: requests, their progress and their ends."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from pydantic import JsonValue
from sqlalchemy import and_, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.clock import now, timestamp
from engine.store.file_references import holder_of_candidates, release_files
from engine.store.production_repairs import end_repair
from engine.store.rows.task_rows import LISTED, is_same_request, json_of, listed_of, stages_of, task_of, task_row
from engine.store.rows.upserts import insert_new
from engine.store.tables import model_turns, tasks
from engine.store.task_announcements import ended, requested, tried_notes
from engine.store.task_notes import lock_of_conversation, read_note, write_notes
from engine.store.task_slots import TaskSlots
from toolagent.contracts.making import Evidence, MakeTask, Stage, StageView, TaskNote, TaskNoteKind, Tried
from toolagent.contracts.making_views import ListedTask
from toolagent.contracts.tasks import TaskState
from toolagent.core.failures import TaskConflictError, TaskEndedError, UnknownTaskError
from toolagent.core.texts import well_formed
from toolagent_service.agents.coding_log import NewNote, log_line

column = tasks.c

Ending = Literal[TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED]
_STATE_OF_LAST_STAGE: dict[TaskState, Literal["done", "failed", "cancelled"]] = {
    TaskState.COMPLETED: "done",
    TaskState.FAILED: "failed",
    TaskState.CANCELLED: "cancelled",
}


class TaskTable(TaskSlots):
    """Writes are keyed by the task's id and idempotent. The ledger (`ModelTurnTable`) writes the costs."""

    async def create(self, task: MakeTask) -> MakeTask:
        """Write a new task with the first note of its log, and return the task that stands under its id.

        Raises TaskConflictError if that is another request.
        """
        async with self._database.write(alone=lock_of_conversation(task.task_id)) as connection:
            await insert_new(connection, tasks, (task_row(task),))
            stands = await _get(connection, task.task_id)
            if not is_same_request(stands, task):
                raise TaskConflictError(task.task_id)
            await write_notes(connection, task.task_id, (requested(stands),))
        return stands

    async def get(self, task_id: str) -> MakeTask | None:
        row = await self._database.mapping(select(tasks).filter_by(task_id=task_id))
        return task_of(row) if row is not None else None

    async def listed(self, task_id: str) -> ListedTask | None:
        """The task as in lists, without its specification, which may be large."""
        row = await self._database.mapping(select(*LISTED).where(column.task_id == task_id))
        return listed_of(row) if row is not None else None

    async def page(
        self,
        *,
        status: TaskState | None = None,
        spec_type: str | None = None,
        tool_id: str | None = None,
        not_at: Stage | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> tuple[ListedTask, ...]:
        """Tasks, the newest first. With `before`, only those older than this task; none if it does not exist.

        `not_at` excludes tasks at this stage, also ended ones, and tasks before their first stage.
        """
        wanted = ((column.status, status.value if status else None), (column.type, spec_type), (column.tool_id, tool_id))
        query = select(*LISTED).where(*(named == value for named, value in wanted if value is not None))
        if not_at is not None:
            query = query.where(column.stage != not_at.value)
        if before is not None:
            at = select(column.created_at).filter_by(task_id=before).scalar_subquery()
            query = query.where(or_(column.created_at < at, and_(column.created_at == at, column.task_id < before)))
        query = query.order_by(column.created_at.desc(), column.task_id.desc()).limit(limit)
        return tuple(map(listed_of, await self._database.mappings(query)))

    async def unended(self) -> tuple[str, ...]:
        """Ids of tasks that have not ended, which are also the ids of their workflows."""
        query = select(column.task_id).where(column.ended_at.is_(None)).order_by(column.created_at)
        return tuple(await self._database.scalars(query))

    async def enter_stage(self, task_id: str, stage: Stage, left: Literal["done", "failed"] = "done") -> None:
        """Begin this stage and end the one before with the state `left`, also in the log.

        Does nothing if the task is at this stage already. Raises TaskEndedError, UnknownTaskError.
        """
        async with self._database.write(alone=lock_of_conversation(task_id)) as connection:
            before, cost_usd = await _stages(connection, task_id)
            if before and before[-1].stage is stage and before[-1].state == "running":
                return
            stages = (*_closed(before, cost_usd, left, now()), StageView(stage=stage, state="running", started_at=now()))
            await connection.execute(_of(task_id).values(stage=stage.value, stages=json_of(stages), progress=""))
            await write_notes(connection, task_id, _said_of(stages))

    async def note_progress(self, task_id: str, progress: str, line: NewNote | None = None) -> None:
        """Set the progress text, and write a note about it. Does nothing if the task has ended."""
        noted = _of(task_id).where(column.ended_at.is_(None)).values(progress=well_formed(progress))
        if line is None:
            await self._database.change(noted)
            return
        async with self._database.write(alone=lock_of_conversation(task_id)) as connection:
            if (await connection.execute(noted)).rowcount:
                await write_notes(connection, task_id, (line,))

    async def say(self, task_id: str, key: str, text: str, payload: JsonValue) -> TaskNote:
        """Write guidance for a running task, and return the note that stands under its key. Raises TaskEndedError, UnknownTaskError."""
        async with self._database.write(alone=lock_of_conversation(task_id)) as connection:
            await _require_unended(connection, task_id)
            await write_notes(connection, task_id, (NewNote(key, TaskNoteKind.GUIDANCE, text, payload),))
            return await read_note(connection, task_id, key)

    async def settle(
        self,
        task_id: str,
        status: Ending,
        reason: str = "",
        *,
        tool_ids: Sequence[str] = (),
        evidence: Evidence | None = None,
        tried: Sequence[Tried] = (),
    ) -> MakeTask:
        """Write the end of the task and the last notes, and release its slot, in one transaction.

        Returns the task as it stands: the first end wins, because a caller may have seen it. Raises UnknownTaskError.
        """
        async with self._database.write(alone=lock_of_conversation(task_id)) as connection:
            task = await _get(connection, task_id)
            if task.ended_at is not None:
                return task
            at = now()
            stages = _closed(task.stages, task.cost_usd, _STATE_OF_LAST_STAGE[status], at)
            columns = {
                "status": status.value,
                "reason": well_formed(reason),
                "tool_ids": json.dumps([*tool_ids]),
                "evidence": evidence.model_dump_json() if evidence else None,
                "tried": json_of(tried) if tried else None,
                "stages": json_of(stages),
                "progress": "",
                "slot_at": None,
                "ended_at": timestamp(at),
            }
            await connection.execute(_of(task_id).values(**columns))
            await release_files(connection, holder_of_candidates(task_id))
            await end_repair(connection, task_id, status)
            well, cost = status is TaskState.COMPLETED, await _cost(connection, task)
            announced = ended(task, well=well, reason=reason, tool_ids=tool_ids, cost_usd=cost, at=at)
            await write_notes(connection, task_id, (*_said_of(stages), *tried_notes(tried, at), *announced))
            return await _get(connection, task_id)

    async def on_host(self, host: str) -> frozenset[str]:
        """Ids of running tasks on this host."""
        query = select(column.task_id).where(column.ended_at.is_(None), column.host == host)
        return frozenset(await self._database.scalars(query))

    async def move(self, task_id: str, left: str, host: str) -> None:
        """Move the task to this host, also in the log. Does nothing if it has ended or is there already."""
        async with self._database.write(alone=lock_of_conversation(task_id)) as connection:
            there = _of(task_id).where(column.ended_at.is_(None), func.coalesce(column.host, "") != host)
            if (await connection.execute(there.values(host=host))).rowcount:
                text = log_line(at := now(), f"[STAGE] the host {left!r} is away; the task goes on on {host!r}")
                await write_notes(connection, task_id, (NewNote(f"moved:{left}:{timestamp(at)}", TaskNoteKind.STAGE, text, None, at),))


def _of(task_id: str):
    return update(tasks).filter_by(task_id=task_id)


async def _get(connection: AsyncConnection, task_id: str) -> MakeTask:
    row = (await connection.execute(select(tasks).filter_by(task_id=task_id))).mappings().one_or_none()
    if row is None:
        raise UnknownTaskError(task_id)
    return task_of(row)


async def _cost(connection: AsyncConnection, task: MakeTask) -> float | None:
    """The cost of its model; None if a turn has no price."""
    unpriced = select(model_turns.c.key).where(model_turns.c.conversation_id == task.task_id, model_turns.c.cost_usd.is_(None)).limit(1)
    return task.cost_usd if (await connection.execute(unpriced)).first() is None else None


async def _require_unended(connection: AsyncConnection, task_id: str) -> None:
    row = (await connection.execute(select(column.status, column.ended_at).filter_by(task_id=task_id))).one_or_none()
    if row is None:
        raise UnknownTaskError(task_id)
    if row.ended_at is not None:
        raise TaskEndedError(task_id, row.status)


async def _stages(connection: AsyncConnection, task_id: str) -> tuple[tuple[StageView, ...], float]:
    """Stages and cost so far of a task. Raises TaskEndedError, UnknownTaskError."""
    await _require_unended(connection, task_id)
    row = (await connection.execute(select(column.stages, column.cost_usd).filter_by(task_id=task_id))).one()
    return stages_of(row.stages), row.cost_usd


def _closed(
    stages: tuple[StageView, ...], cost_usd: float, state: Literal["done", "failed", "cancelled"], at: datetime
) -> tuple[StageView, ...]:
    """The stages with the last one ended. Its cost is the total without the earlier stages."""
    if not stages or stages[-1].state != "running":
        return stages
    *before, last = stages
    cost = max(cost_usd - sum(stage.cost_usd for stage in before), 0.0)
    return (*before, last.model_copy(update={"state": state, "ended_at": at, "cost_usd": cost}))


def _said_of(stages: Sequence[StageView]) -> tuple[NewNote, ...]:
    """A note for each beginning and each end of a stage."""
    found: list[NewNote] = []
    for number, stage in enumerate(stages, start=1):
        begun = stage.model_copy(update={"state": "running", "ended_at": None, "cost_usd": 0.0})
        found.append(_note(f"stage:{number}:begun", f"[STAGE] {stage.stage.value} begins", begun, stage.started_at))
        if stage.ended_at is not None:
            seconds = (stage.ended_at - stage.started_at).total_seconds()
            text = f"[STAGE] {stage.stage.value} {stage.state} after {seconds:.1f} s, ${stage.cost_usd:.4f}"
            found.append(_note(f"stage:{number}:ended", text, stage, stage.ended_at))
    return tuple(found)


def _note(key: str, text: str, stage: StageView, at: datetime) -> NewNote:
    return NewNote(key, TaskNoteKind.STAGE, log_line(at, text), stage.model_dump(mode="json"), at)
