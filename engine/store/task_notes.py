"""The table `task_notes`: the log of a task."""

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache

from pydantic import JsonValue
from sqlalchemy import RowMapping, bindparam, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.clock import now, timestamp
from engine.store.database import DatabaseAccess
from engine.store.rows.upserts import dialect_insert
from engine.store.tables import task_notes
from toolagent.contracts.making import TaskNote, TaskNoteKind
from toolagent.core.texts import well_formed
from toolagent_service.agents.coding_log import NewNote

column = task_notes.c

_AT_ONCE = 500
_LONGEST_KEY = 200


class TaskNoteTable(DatabaseAccess):
    """Positions count from 1 without gaps, in the order of commits. Notes never change."""

    async def write(self, task_id: str, notes: Sequence[NewNote]) -> None:
        """Write notes in this order. Idempotent: of two notes with one key, the first stands."""
        async with self._database.write(alone=lock_of_conversation(task_id)) as connection:
            await write_notes(connection, task_id, notes)

    async def after(self, task_id: str, position: int = 0, *, limit: int = _AT_ONCE) -> tuple[TaskNote, ...]:
        """The notes after a position, in order, at most `limit`."""
        query = select(task_notes).where(column.task_id == task_id, column.position > position)
        rows = await self._database.mappings(query.order_by(column.position).limit(limit))
        return tuple(map(_note, rows))

    async def count(self, task_id: str, kind: TaskNoteKind, *, but: str = "") -> int:
        """Number of notes of a kind, except the one with key `but`."""
        of_kind = (column.task_id == task_id, column.kind == kind.value, column.key != bounded(but))
        return await self._database.scalar(select(func.count()).select_from(task_notes).where(*of_kind)) or 0

    async def tail(self, task_id: str, count: int) -> tuple[TaskNote, ...]:
        """The last `count` notes, in order."""
        query = select(task_notes).filter_by(task_id=task_id).order_by(column.position.desc()).limit(count)
        rows = await self._database.mappings(query)
        return tuple(_note(row) for row in reversed(rows))


def lock_of_conversation(task_id: str) -> str:
    """The `alone` of transactions that assign positions of a task, or write what they conclude from its row."""
    return f"task:{task_id}"


async def write_notes(connection: AsyncConnection, task_id: str, notes: Sequence[NewNote]) -> None:
    """Write the notes with new keys. Needs the lock of the task, so that positions have no gaps."""
    if notes:
        await connection.execute(_insertion(connection.dialect.name), [_row(task_id, note) for note in notes])


async def read_note(connection: AsyncConnection, task_id: str, key: str) -> TaskNote:
    """The note with this key, which must exist."""
    query = select(task_notes).where(column.task_id == task_id, column.key == bounded(key))
    return _note((await connection.execute(query)).mappings().one())


# One statement for all notes, because a turn of a model waits for each round trip. Each row sees the rows before it.
@lru_cache
def _insertion(dialect: str) -> sqlite.Insert | postgresql.Insert:
    given = ("task_id", "key", "at", "kind", "text", "payload")
    values = [bindparam(f"new_{name}", type_=task_notes.c[name].type) for name in given]
    position = func.coalesce(func.max(column.position), 0) + 1
    row = select(*values, position).where(column.task_id == bindparam("new_task_id", type_=column.task_id.type))
    new = dialect_insert(dialect, task_notes).from_select([*given, "position"], row)
    return new.on_conflict_do_nothing(index_elements=["task_id", "key"])


def bounded(key: str) -> str:
    """The key as stored. Long or unprintable keys, which may come from a model, are hashed."""
    return key if len(key) <= _LONGEST_KEY and key.isprintable() else hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _row(task_id: str, note: NewNote) -> dict[str, object]:
    """The parameters of `_insertion`."""
    return {
        "new_task_id": task_id,
        "new_key": bounded(note.key),
        "new_at": timestamp(note.at or now()),
        "new_kind": note.kind.value,
        "new_text": well_formed(note.text),
        "new_payload": json.dumps(note.payload) if note.payload is not None else None,
    }


def _note(row: RowMapping) -> TaskNote:
    payload: JsonValue = json.loads(row["payload"]) if row["payload"] else None
    return TaskNote.model_validate({**row, "payload": payload})
