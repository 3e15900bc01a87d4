"""The table `call_messages`: progress, questions and answers of running calls."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta

from pydantic import JsonValue
from sqlalchemy import Column, Index, Integer, RowMapping, String, Table, Text, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.clock import now, timestamp
from engine.store.database import Database, DatabaseAccess
from engine.store.rows.upserts import insert_new
from engine.store.tables import METADATA, calls, key, required
from toolagent.contracts.call_messages import CallMessage, MessageKind

_AT_ONCE = 500
_LOOK_S, _LONGEST_LOOK_S = 0.02, 0.25
_KEPT = timedelta(minutes=5)
"""How long messages stay after the end of the call, for callers that ask again."""

_KEPT_AT_MOST = timedelta(hours=26)
"""Longer than any call takes: a day at most."""

Payload = Mapping[str, JsonValue]

call_messages = Table(
    "call_messages",
    METADATA,
    key("call_id", String(100)),
    key("position", Integer),
    required("kind", String(16)),
    required("payload", Text),
    Column("answer", Text),
    required("at", String(32)),
    Column("answered_at", String(32)),
    Index("ix_call_messages_at", "at"),
)

column = call_messages.c


class CallMessages(DatabaseAccess):
    """All raise StoreUnavailableError. The caller and the tool may be in two processes."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._waiting: dict[tuple[str, int], asyncio.Event] = {}

    async def say_all(self, call_id: str, new: Sequence[tuple[MessageKind, Payload]]) -> int:
        """Write messages in this order, and return the position of the last. Not idempotent."""
        async with self._database.write(alone=f"messages of {call_id}") as connection:
            last = await _last(connection, call_id)
            at = timestamp()
            rows = [
                {"call_id": call_id, "position": position, "kind": kind, "payload": json.dumps(payload), "at": at}
                for position, (kind, payload) in enumerate(new, last + 1)
            ]
            await insert_new(connection, call_messages, rows)
        return last + len(new)

    async def after(self, call_id: str, position: int = 0) -> tuple[CallMessage, ...]:
        """The messages after a position, in order, at most 500."""
        query = select(call_messages).where(column.call_id == call_id, column.position > position)
        return tuple(map(_message, await self._database.mappings(query.order_by(column.position).limit(_AT_ONCE))))

    async def open_questions(self, call_id: str) -> tuple[CallMessage, ...]:
        """Unanswered questions, in order, at most 500."""
        asked = (column.call_id == call_id, column.kind == "question", column.answer.is_(None))
        query = select(call_messages).where(*asked).order_by(column.position).limit(_AT_ONCE)
        return tuple(map(_message, await self._database.mappings(query)))

    async def answer(self, call_id: str, position: int, answer: Payload) -> bool:
        """Answer a question. False if it is answered already or does not exist."""
        values = {"answer": json.dumps(answer), "answered_at": timestamp()}
        asked = (column.call_id == call_id, column.position == position, column.kind == "question")
        is_answered = await self._database.change(update(call_messages).where(*asked, column.answer.is_(None)).values(**values))
        if (waiting := self._waiting.get((call_id, position))) is not None:
            waiting.set()
        return bool(is_answered)

    async def wait_answer(self, call_id: str, position: int, timeout_s: float) -> dict[str, JsonValue]:
        """Wait for the answer to a question, which any process may receive. Raises TimeoutError."""
        query = select(column.answer).filter_by(call_id=call_id, position=position)
        answered = self._waiting.setdefault((call_id, position), asyncio.Event())
        pause_s = _LOOK_S
        try:
            async with asyncio.timeout(timeout_s):
                while (answer := await self._database.scalar(query)) is None:
                    try:
                        async with asyncio.timeout(pause_s):
                            await answered.wait()
                    except TimeoutError:
                        pause_s = min(2 * pause_s, _LONGEST_LOOK_S)
        finally:
            self._waiting.pop((call_id, position), None)
        return json.loads(answer)

    async def forget_ended(self) -> tuple[str, ...]:
        """Remove the messages of ended calls. Returns a line for the log."""
        settled = select(calls.c.call_id).where(calls.c.call_id == column.call_id, calls.c.settled_at < timestamp(now() - _KEPT))
        old = column.at < timestamp(now() - _KEPT_AT_MOST)
        forgotten = await self._database.change(delete(call_messages).where(or_(settled.exists(), old)))
        return (f"forgot {forgotten} messages of calls",) if forgotten else ()


async def _last(connection: AsyncConnection, call_id: str) -> int:
    position = func.coalesce(func.max(column.position), 0)
    return (await connection.execute(select(position).where(column.call_id == call_id))).scalar_one()


def _message(row: RowMapping) -> CallMessage:
    answer: JsonValue = json.loads(row["answer"]) if row["answer"] else None
    return CallMessage.model_validate({**row, "payload": json.loads(row["payload"]), "answer": answer})
