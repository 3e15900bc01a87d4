"""The table `model_turns`, the ledger: what each turn of a model said and cost, so that no turn is paid twice."""

from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue
from sqlalchemy import BigInteger, RowMapping, Select, case, cast, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.clock import timestamp
from engine.store.database import Database
from engine.store.messages import MessageTable, write_message
from engine.store.tables import model_turns, tasks
from engine.store.task_notes import NewNote, bounded, lock_of_task, plain, write_notes
from toolagent.contracts.making import TaskNoteKind
from toolagent.contracts.model import Message, ModelTurn, Usage
from toolagent.core.coding_log import turn_cost_line
from toolagent.core.failures import ContentMissingError

__all__ = ["Asked", "Lost", "ModelTurnTable", "Origins", "RecordedTurn", "Spent"]

_LOST = "/lost/"
"""In keys: between the turn and the attempt that broke off."""

_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_TOKENS = model_turns.c.input_tokens + model_turns.c.output_tokens + model_turns.c.cache_read_tokens + model_turns.c.cache_write_tokens


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A turn that was paid for. `position` is that of its message in the transcript."""

    turn: ModelTurn
    position: int


@dataclass(frozen=True, slots=True)
class Asked:
    """Of whom a turn was asked, and with which prompt (`name@version`)."""

    provider: str = ""
    model: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Spent:
    """By a task so far. `cost_usd` leaves out turns of models whose price is not known; `unpriced` says how many those are.

    `lost` are attempts that broke off after tokens were used: no turns, but paid for.
    """

    turns: int
    tokens: int
    cost_usd: float
    unpriced: int
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Lost:
    """What attempts at one turn used that broke off, together."""

    attempts: int
    usage: Usage
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Origins:
    """Where the turns of a task come from, each thing once, in the order of first use: what was asked, and which models answered."""

    asked: tuple[Asked, ...] = ()
    answered: tuple[str, ...] = ()


_NOT_SAID = Asked()


class ModelTurnTable:
    """A turn is named by its task and a key that says which turn of which run it is. Each line is told of in the log of its task."""

    def __init__(self, database: Database, messages: MessageTable) -> None:
        self._database = database
        self._messages = messages

    async def recorded(self, task_id: str, key: str) -> RecordedTurn | None:
        """A turn that was had before, with what the model said; None when it has to be had."""
        query = select(model_turns).where(model_turns.c.task_id == task_id, model_turns.c.key == bounded(key))
        async with self._database.read() as connection:
            row = (await connection.execute(query)).mappings().one_or_none()
        if row is None:
            return None
        found = await self._messages.read(task_id, row["position"], row["position"])
        if not found:
            raise ContentMissingError(key)
        return RecordedTurn(_turn(row, found[0]), row["position"])

    async def record(
        self,
        task_id: str,
        key: str,
        turn: ModelTurn,
        started_at: datetime,
        ended_at: datetime,
        *,
        position: int | None = None,
        asked: Asked = _NOT_SAID,
    ) -> RecordedTurn:
        """Write its message, its line in the ledger and the task's new sums in one transaction. Returns what stands under the key.

        The message goes to `position`, or after the last one where none is named. Of two turns with one key, and of two messages for one
        position, the first stands; a second turn was paid all the same, and is in the ledger.
        """
        packed = await self._messages.pack(Message(role="assistant", content=turn.content))
        row = _row(task_id, key, turn, asked, started_at, ended_at)
        async with self._database.write(alone=lock_of_task(task_id)) as connection:
            known = (await connection.execute(_position_of(task_id, key))).scalar_one_or_none()
            if known is None:
                row["position"] = await write_message(connection, task_id, f"turn:{key}", packed, position)
            await _enter(connection, task_id, key, turn, row if known is None else None, ended_at)
        stands = await self.recorded(task_id, key)
        if stands is None:
            raise ContentMissingError(key)
        return stands

    async def record_lost(
        self,
        task_id: str,
        key: str,
        attempt: str,
        spent: ModelTurn,
        started_at: datetime,
        ended_at: datetime,
        *,
        position: int,
        asked: Asked = _NOT_SAID,
    ) -> None:
        """What an attempt at the turn of this key used before it broke off. Recorded again for the same attempt, it is there once.

        Of `spent` the content does not count: nobody has it. `position` is where the answer would have been.
        """
        named = f"{key}{_LOST}{attempt}"
        row = _row(task_id, named, spent, asked, started_at, ended_at) | {"position": position}
        async with self._database.write(alone=lock_of_task(task_id)) as connection:
            known = (await connection.execute(_position_of(task_id, named))).scalar_one_or_none()
            await _enter(connection, task_id, named, spent, row if known is None else None, ended_at)

    async def lost(self, task_id: str, key: str) -> Lost:
        """By all attempts at the turn of this key that broke off."""
        sums = [cast(func.coalesce(func.sum(model_turns.c[name]), 0), BigInteger).label(name) for name in _COUNTS]
        cost = func.coalesce(func.sum(model_turns.c.cost_usd), 0.0).label("cost_usd")
        of_turn = model_turns.c.key.startswith(f"{key}{_LOST}", autoescape=True)
        query = select(func.count().label("attempts"), cost, *sums).where(model_turns.c.task_id == task_id, of_turn)
        async with self._database.read() as connection:
            row = (await connection.execute(query)).mappings().one()
        return Lost(row["attempts"], Usage.model_validate(dict(row)), row["cost_usd"])

    async def spent(self, task_id: str) -> Spent:
        async with self._database.read() as connection:
            turns, tokens, cost, unpriced, lost = (await connection.execute(_sums(task_id))).one()
        return Spent(turns, tokens, cost, unpriced, lost)

    async def origins(self, task_id: str) -> Origins:
        columns = (model_turns.c.provider, model_turns.c.asked_model, model_turns.c.prompt, model_turns.c.model)
        first = func.min(model_turns.c.started_at)
        query = select(*columns).where(model_turns.c.task_id == task_id).group_by(*columns).order_by(first, *columns)
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).all()
        asked = dict.fromkeys(Asked(provider, model, prompt) for provider, model, prompt, _ in rows)
        return Origins(tuple(asked), tuple(dict.fromkeys(answered for *_, answered in rows)))


async def _enter(connection: AsyncConnection, task_id: str, key: str, turn: ModelTurn, row: dict[str, object] | None, at: datetime) -> None:
    """Write a line of the ledger, unless it is there, with the task's new sums and what is said of both.

    In a transaction that has the lock of the task.
    """
    if row is not None:
        await connection.execute(insert(model_turns).values(**row))
    _, tokens, cost, _, _ = (await connection.execute(_sums(task_id))).one()
    await connection.execute(update(tasks).where(tasks.c.task_id == task_id).values(tokens=tokens, cost_usd=cost))
    payload: JsonValue = {
        "model": turn.model,
        "usage": dict(turn.usage.model_dump()),
        "cost_usd": turn.cost_usd,
        "is_lost": _LOST in key,
        "task_tokens": tokens,
        "task_cost_usd": cost,
    }
    text = turn_cost_line(at, turn.usage.total, turn.cost_usd, tokens, cost, is_lost=_LOST in key)
    # Once: of a line that was there this was said when it was written.
    await write_notes(connection, task_id, (NewNote(f"cost:{key}", TaskNoteKind.COST, text, payload, at),))


def _row(task_id: str, key: str, turn: ModelTurn, asked: Asked, started_at: datetime, ended_at: datetime) -> dict[str, object]:
    """All but the position."""
    return {
        "task_id": task_id,
        "key": bounded(key),
        "provider": plain(asked.provider),
        "asked_model": plain(asked.model),
        "model": plain(turn.model),
        "prompt": plain(asked.prompt),
        "stop_reason": plain(turn.stop_reason),
        **turn.usage.model_dump(),
        "cost_usd": turn.cost_usd,
        "started_at": timestamp(started_at),
        "ended_at": timestamp(ended_at),
    }


def _position_of(task_id: str, key: str) -> Select[int]:
    return select(model_turns.c.position).where(model_turns.c.task_id == task_id, model_turns.c.key == bounded(key))


def _sums(task_id: str) -> Select[int, int, float, int, int]:
    # Cast: PostgreSQL's sum of BIGINT is a NUMERIC.
    tokens = cast(func.coalesce(func.sum(_TOKENS), 0), BigInteger)
    cost = func.coalesce(func.sum(model_turns.c.cost_usd), 0.0)
    unpriced = func.count() - func.count(model_turns.c.cost_usd)
    lost = func.count(case((model_turns.c.key.contains(_LOST, autoescape=True), 1)))
    return select(func.count() - lost, tokens, cost, unpriced, lost).where(model_turns.c.task_id == task_id)


def _turn(row: RowMapping, message: Message) -> ModelTurn:
    return ModelTurn(
        content=message.content,
        stop_reason=row["stop_reason"],
        model=row["model"],
        usage=Usage.model_validate(dict(row)),
        cost_usd=row["cost_usd"],
    )
