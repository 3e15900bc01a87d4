"""The table `model_turns`, the ledger: what each turn of a model said and cost, so that no turn is paid twice."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import BigInteger, RowMapping, Select, cast, func, insert, select, update

from engine.store.clock import timestamp
from engine.store.database import Database
from engine.store.messages import MessageTable, write_message
from engine.store.tables import model_turns, tasks
from engine.store.task_notes import bounded, lock_of_task, plain
from toolagent.contracts.model import Message, ModelTurn, Usage
from toolagent.core.failures import ContentMissingError

__all__ = ["ModelTurnTable", "RecordedTurn", "Spent"]

_TOKENS = model_turns.c.input_tokens + model_turns.c.output_tokens + model_turns.c.cache_read_tokens + model_turns.c.cache_write_tokens


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A turn that was paid for. `position` is that of its message in the transcript."""

    turn: ModelTurn
    position: int


@dataclass(frozen=True, slots=True)
class Spent:
    """By a task so far. `cost_usd` leaves out turns of models whose price is not known; `unpriced` says how many those are."""

    turns: int
    tokens: int
    cost_usd: float
    unpriced: int


class ModelTurnTable:
    """A turn is named by its task and a key that says which turn of which run it is."""

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
        self, task_id: str, key: str, turn: ModelTurn, started_at: datetime, ended_at: datetime, *, position: int | None = None
    ) -> RecordedTurn:
        """Write its message, its line in the ledger and the task's new sums in one transaction. Returns what stands under the key.

        The message goes to `position`, or after the last one where none is named. Of two turns with one key, and of two messages for one
        position, the first stands; a second turn was paid all the same, and is in the ledger.
        """
        packed = await self._messages.pack(Message(role="assistant", content=turn.content))
        row: dict[str, object] = {
            "task_id": task_id,
            "key": bounded(key),
            "model": plain(turn.model),
            "stop_reason": plain(turn.stop_reason),
            **turn.usage.model_dump(),
            "cost_usd": turn.cost_usd,
            "started_at": timestamp(started_at),
            "ended_at": timestamp(ended_at),
        }
        async with self._database.write(alone=lock_of_task(task_id)) as connection:
            known = (await connection.execute(_position_of(task_id, key))).scalar_one_or_none()
            if known is None:
                row["position"] = await write_message(connection, task_id, f"turn:{key}", packed, position)
                await connection.execute(insert(model_turns).values(**row))
            _, tokens, cost, _ = (await connection.execute(_sums(task_id))).one()
            await connection.execute(update(tasks).where(tasks.c.task_id == task_id).values(tokens=tokens, cost_usd=cost))
        stands = await self.recorded(task_id, key)
        if stands is None:
            raise ContentMissingError(key)
        return stands

    async def spent(self, task_id: str) -> Spent:
        async with self._database.read() as connection:
            turns, tokens, cost, unpriced = (await connection.execute(_sums(task_id))).one()
        return Spent(turns, tokens, cost, unpriced)


def _position_of(task_id: str, key: str) -> Select[int]:
    return select(model_turns.c.position).where(model_turns.c.task_id == task_id, model_turns.c.key == bounded(key))


def _sums(task_id: str) -> Select[int, int, float, int]:
    # Cast: PostgreSQL's sum of BIGINT is a NUMERIC.
    tokens = cast(func.coalesce(func.sum(_TOKENS), 0), BigInteger)
    cost = func.coalesce(func.sum(model_turns.c.cost_usd), 0.0)
    unpriced = func.count() - func.count(model_turns.c.cost_usd)
    return select(func.count(), tokens, cost, unpriced).where(model_turns.c.task_id == task_id)


def _turn(row: RowMapping, message: Message) -> ModelTurn:
    return ModelTurn(
        content=message.content,
        stop_reason=row["stop_reason"],
        model=row["model"],
        usage=Usage.model_validate(dict(row)),
        cost_usd=row["cost_usd"],
    )
