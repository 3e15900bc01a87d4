"""The table `model_turns`, the ledger: what each turn of a model cost, so that no turn is paid twice."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue
from sqlalchemy import BigInteger, RowMapping, Select, bindparam, case, cast, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.clock import timestamp
from engine.store.database import Database
from engine.store.messages import MessageTable, key_of_position, write_message
from engine.store.tables import model_turns, tasks
from engine.store.task_notes import bounded, lock_of_conversation, write_notes
from toolagent.contracts.making import TaskNoteKind
from toolagent.core.failures import ContentMissingError
from toolagent.core.texts import well_formed
from toolagent_service.agents.coding_log import NewNote, turn_cost_line
from toolagent_service.agents.ledger import Asked, Lost, RecordedTurn, TurnState
from toolagent_service.contracts.model import Message, ModelTurn, Usage

column = model_turns.c

_LOST = "/lost/"
"""Separates turn and attempt in the key of a lost attempt."""

_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_TOKENS = column.input_tokens + column.output_tokens + column.cache_read_tokens + column.cache_write_tokens


@dataclass(frozen=True, slots=True)
class Spent:
    """Sums of a conversation so far. `cost_usd` leaves out the `unpriced` turns, whose model has no known price.

    `lost` counts attempts that broke off after using tokens: they are no turns, but cost money.
    """

    turns: int
    tokens: int
    cost_usd: float
    unpriced: int
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Origins:
    """What was asked and which models answered, each once, in the order of first use."""

    asked: tuple[Asked, ...] = ()
    answered: tuple[str, ...] = ()


_NOT_SAID = Asked()

Also = Callable[[AsyncConnection], Awaitable[None]]
"""Writes more in the same transaction."""

# Building a statement costs more than sending it.
_OF = column.conversation_id == bindparam("of")
_TURN_OF = select(column.position, column.started_at, column.ended_at).where(_OF, column.key == bindparam("own"))
_STATE = select(model_turns).where(_OF, or_(column.key == bindparam("own"), column.key.like(bindparam("lost"), escape="!")))
_ESCAPED = re.compile("[!%_]")
_NEW_TURN = insert(model_turns)


class ModelTurnTable:
    """Conversation and key identify a turn; the key names the run and the turn. The log of a task shows each line.

    The row of a task holds the sums of its conversation.
    """

    def __init__(self, database: Database, messages: MessageTable) -> None:
        self._database = database
        self._messages = messages

    async def state(self, conversation_id: str, key: str) -> TurnState:
        """The state of the turn of this key. `recorded` is None if the model has to be asked."""
        own, lost = bounded(key), _ESCAPED.sub(r"!\g<0>", f"{key}{_LOST}")
        rows = await self._database.mappings(_STATE, {"of": conversation_id, "own": own, "lost": f"{lost}%"})
        recorded = [await self._with_message(conversation_id, row) for row in rows if row["key"] == own]
        return TurnState(recorded[0] if recorded else None, _lost([row for row in rows if row["key"] != own]))

    async def record(
        self,
        conversation_id: str,
        key: str,
        turn: ModelTurn,
        started_at: datetime,
        ended_at: datetime,
        *,
        position: int,
        asked: Asked = _NOT_SAID,
        question: Message | None = None,
        notes: Sequence[NewNote] = (),
        attempt: str = "",
        of_task: bool = True,
        also: Also | None = None,
    ) -> RecordedTurn:
        """Write the message, the line of the ledger, the new sums and the notes in one transaction.

        Returns the turn that stands under the key. The message goes to `position`, `question` to the position before. The first of two
        turns with one key, and of two messages for one position, stands. The cost of the second is recorded as by `record_lost`, if its
        `attempt` is given. Without `of_task` there is neither a log nor a task with sums. `also` runs only if this turn stands.
        """
        packed = await self._messages.pack(Message(role="assistant", content=turn.content))
        before = await self._messages.pack(question) if question is not None else None
        row = _row(conversation_id, key, turn, asked, started_at, ended_at)
        named = {"of": conversation_id, "own": bounded(key)}

        async def write(connection: AsyncConnection) -> RecordedTurn | None:
            if before is not None:
                await write_message(connection, conversation_id, key_of_position(position - 1), before, position - 1)
            standing = await write_message(connection, conversation_id, f"turn:{key}", packed, position)
            row["position"] = standing.position
            # A turn is written with its message: a new message means a new turn.
            known = None if standing.is_new else (await connection.execute(_TURN_OF, named)).one_or_none()
            if known is None:
                await _enter(connection, conversation_id, key, turn, row, ended_at, notes, of_task=of_task)
                if not standing.is_new:
                    return None
                if also is not None:
                    await also(connection)
                return RecordedTurn(turn.model_copy(update=_kept_of(row)), standing.position)
            # With the same times, it is this turn, written again.
            if attempt and (known.started_at, known.ended_at) != (row["started_at"], row["ended_at"]):
                lost_key = f"{key}{_LOST}{attempt}"
                lost = {**row, "key": bounded(lost_key), "position": known.position}
                await _enter_lost(connection, conversation_id, lost_key, turn, lost, ended_at, of_task=of_task)
            return None

        stands = await self._database.transact(write, alone=lock_of_conversation(conversation_id))
        # Read it only if another one stands.
        stands = stands or (await self.state(conversation_id, key)).recorded
        if stands is None:
            raise ContentMissingError(key)
        return stands

    async def record_lost(
        self,
        conversation_id: str,
        key: str,
        attempt: str,
        spent: ModelTurn,
        started_at: datetime,
        ended_at: datetime,
        *,
        position: int,
        asked: Asked = _NOT_SAID,
        of_task: bool = True,
    ) -> None:
        """Record what an attempt at this turn used before it broke off. Idempotent for each attempt.

        The content of `spent` is ignored. `position` is where the answer would have been.
        """
        named = f"{key}{_LOST}{attempt}"
        row = _row(conversation_id, named, spent, asked, started_at, ended_at) | {"position": position}
        async with self._database.write(alone=lock_of_conversation(conversation_id)) as connection:
            await _enter_lost(connection, conversation_id, named, spent, row, ended_at, of_task=of_task)

    async def spent(self, conversation_id: str) -> Spent:
        async with self._database.read() as connection:
            turns, tokens, cost, unpriced, lost = (await connection.execute(_sums(conversation_id))).one()
        return Spent(turns, tokens, cost, unpriced, lost)

    async def origins(self, conversation_id: str) -> Origins:
        columns = (column.provider, column.asked_model, column.prompt, column.model)
        first = func.min(column.started_at)
        query = select(*columns).where(column.conversation_id == conversation_id).group_by(*columns).order_by(first, *columns)
        rows = await self._database.rows(query)
        asked = dict.fromkeys(Asked(provider, model, prompt) for provider, model, prompt, _ in rows)
        return Origins(tuple(asked), tuple(dict.fromkeys(answered for *_, answered in rows)))

    async def _with_message(self, conversation_id: str, row: RowMapping) -> RecordedTurn:
        found = await self._messages.read(conversation_id, row["position"], row["position"])
        if not found:
            raise ContentMissingError(row["key"])
        return RecordedTurn(_turn(row, found[0]), row["position"])


async def _enter_lost(
    connection: AsyncConnection, conversation_id: str, key: str, spent: ModelTurn, row: dict[str, object], at: datetime, *, of_task: bool
) -> None:
    """Write the line of a lost attempt, unless it exists."""
    if (await connection.execute(_TURN_OF, {"of": conversation_id, "own": bounded(key)})).one_or_none() is None:
        await _enter(connection, conversation_id, key, spent, row, at, of_task=of_task)


async def _enter(
    connection: AsyncConnection,
    conversation_id: str,
    key: str,
    turn: ModelTurn,
    row: dict[str, object],
    at: datetime,
    notes: Sequence[NewNote] = (),
    *,
    of_task: bool,
) -> None:
    """Write a line of the ledger; for a task also the new sums, the note about them, and then the `notes`.

    Needs the lock of the conversation. The line must not exist yet.
    """
    await connection.execute(_NEW_TURN, row)
    if not of_task:
        return
    _, tokens, cost, unpriced, _ = (await connection.execute(_sums(conversation_id))).one()
    sums = {"tokens": tokens, "cost_usd": cost, "unpriced_turns": unpriced}
    await connection.execute(update(tasks).filter_by(task_id=conversation_id).values(**sums))
    payload: JsonValue = {
        "model": turn.model,
        "usage": dict(turn.usage.model_dump()),
        "cost_usd": turn.cost_usd,
        "is_lost": _LOST in key,
        "task_tokens": tokens,
        "task_cost_usd": cost,
        "task_unpriced_turns": unpriced,
    }
    text = turn_cost_line(at, turn.usage.total, turn.cost_usd, tokens, cost, is_lost=_LOST in key, unpriced=unpriced)
    await write_notes(connection, conversation_id, (NewNote(f"cost:{key}", TaskNoteKind.COST, text, payload, at), *notes))


def _row(conversation_id: str, key: str, turn: ModelTurn, asked: Asked, started_at: datetime, ended_at: datetime) -> dict[str, object]:
    """The row without its position."""
    return {
        "conversation_id": conversation_id,
        "key": bounded(key),
        "provider": well_formed(asked.provider),
        "asked_model": well_formed(asked.model),
        "model": well_formed(turn.model),
        "prompt": well_formed(asked.prompt),
        "stop_reason": well_formed(turn.stop_reason),
        **turn.usage.model_dump(),
        "cost_usd": turn.cost_usd,
        "started_at": timestamp(started_at),
        "ended_at": timestamp(ended_at),
    }


def _kept_of(row: Mapping[str, object]) -> dict[str, object]:
    """The texts of a turn as stored: the database cannot hold all characters."""
    return {name: row[name] for name in ("model", "stop_reason")}


def _sums(conversation_id: str) -> Select[int, int, float, int, int]:
    # PostgreSQL's sum of BIGINT is NUMERIC.
    tokens = cast(func.coalesce(func.sum(_TOKENS), 0), BigInteger)
    cost = func.coalesce(func.sum(column.cost_usd), 0.0)
    unpriced = func.count() - func.count(column.cost_usd)
    lost = func.count(case((column.key.contains(_LOST, autoescape=True), 1)))
    return select(func.count() - lost, tokens, cost, unpriced, lost).where(column.conversation_id == conversation_id)


def _lost(rows: Sequence[RowMapping]) -> Lost:
    counts: dict[str, int] = {name: sum(row[name] for row in rows) for name in _COUNTS}
    return Lost(len(rows), Usage.model_validate(counts), sum(row["cost_usd"] or 0.0 for row in rows))


def _turn(row: RowMapping, message: Message) -> ModelTurn:
    return ModelTurn(
        content=message.content,
        stop_reason=row["stop_reason"],
        model=row["model"],
        usage=Usage.model_validate(dict(row)),
        cost_usd=row["cost_usd"],
    )
