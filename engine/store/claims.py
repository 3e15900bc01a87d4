"""The table `claims`: accepted calls that have not ended, each with one owner."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from typing import Literal, TypeAlias

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Delete, RowMapping, and_, bindparam, delete, not_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.clock import now, timestamp
from engine.store.database import Database, DatabaseAccess
from engine.store.group_commit import GroupCommit
from engine.store.rows.upserts import insert_new
from engine.store.tables import calls, claims
from toolagent.contracts.calls import ToolCall

column = claims.c

WORKFLOW = "workflow"
"""Owner of a call with an `InvokeTool` workflow of its own: Temporal brings it to its end."""

NOBODY = "nobody"
"""Owner of a call that its door gave up: any door may start its `InvokeTool`, which takes over the claim."""

_FRESH = timedelta(seconds=15)

Standing: TypeAlias = Literal["ours", "held", "settled"]
"""`ours`: we own the claim. `held`: another owner does. `settled`: the call has ended, and its record has the result."""

_HELD = select(column.call_id, column.fingerprint, column.owner, column.number, column.cancelled_at).where(
    column.call_id.in_(bindparam("calls", expanding=True))
)
# In one order, so that transactions cannot deadlock. SQLite runs one at a time and ignores FOR UPDATE.
_LOCKED = _HELD.order_by(column.call_id).with_for_update()
_SETTLED = select(calls.c.call_id).where(calls.c.call_id.in_(bindparam("calls", expanding=True)), calls.c.settled_at.is_not(None))
_RECORDED = select(calls.c.call_id).where(calls.c.call_id.in_(bindparam("calls", expanding=True)))
_ENDED = select(column.call_id).join(calls, calls.c.call_id == column.call_id).where(calls.c.settled_at.is_not(None))


@dataclass(frozen=True, slots=True)
class Claim:
    """The owner of a call. `number` grows with each owner. `call` is set if it was requested and is readable.

    `claimed_at` is set by callers that must later tell this claim from an earlier one.
    """

    call_id: str
    fingerprint: str
    owner: str
    number: int = 1
    is_cancelled: bool = False
    call: ToolCall | None = None
    claimed_at: str = field(default="", compare=False)

    def is_held_as(self, other: "Claim | None") -> bool:
        """Whether the same owner still has it."""
        return other is not None and (other.owner, other.number) == (self.owner, self.number)


class ClaimTable(DatabaseAccess):
    """All methods raise StoreUnavailableError. Writes are idempotent."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._taking = GroupCommit[_Asked](database, _take)
        self._looking = GroupCommit[_Looked](database, _look)

    async def take(self, claim: Claim, call: ToolCall) -> tuple[Standing, Claim]:
        """Accept the call for the claim's owner: from then on it ends with a result, whatever dies. Returns the claim that stands."""
        asked = _Asked(claim, _row(claim, call), claim)
        await self._taking.write(asked)
        return asked.standing, asked.found

    async def withdraw(self, call_id: str, owner: str, claimed_at: str | None = None) -> None:
        """Undo the acceptance: the caller is told to try again. With `claimed_at`, only that very claim is removed."""
        mine = delete(claims).filter_by(call_id=call_id, owner=owner)
        await self._database.change(mine if claimed_at is None else mine.filter_by(claimed_at=claimed_at))

    async def get(self, call_id: str) -> Claim | None:
        row = await self._database.mapping(select(claims).filter_by(call_id=call_id))
        return None if row is None else _claim(row)

    async def is_known(self, call_id: str) -> bool:
        """Whether the call was accepted or has a record. Concurrent questions share a transaction, which writes nothing."""
        looked = _Looked(call_id)
        await self._looking.write(looked)
        return looked.is_known

    async def cancel(self, call_id: str) -> str | None:
        """Mark the call as cancelled. Returns its owner, None if it has no claim."""
        cancelled = update(claims).filter_by(call_id=call_id).values(cancelled_at=timestamp()).returning(column.owner)
        async with self._database.write_once() as connection:
            return (await connection.execute(cancelled)).scalar_one_or_none()

    async def cancelled(self, owner: str) -> Sequence[str]:
        """The cancelled calls of an owner."""
        return await self._database.scalars(select(column.call_id).where(column.owner == owner, column.cancelled_at.is_not(None)))

    async def held(self, call_ids: Sequence[str]) -> Mapping[str, Claim]:
        """Claims of those of these calls that have not ended."""
        async with self._database.read() as connection:
            return await held_claims(connection, call_ids)

    async def drop_ended(self) -> None:
        """Remove claims of ended calls. They were committed together with the end, or later by a process that did not know of it."""
        if ended := await self._database.scalars(_ENDED):
            async with self._database.write_once() as connection:
                await delete_claims(connection, ended)

    async def abandoned(self, living: Collection[str], most: int, after: str = "") -> tuple[Claim, ...]:
        """Claims of owners that are not alive, with their calls, by call id, those after `after`."""
        # A fresh claim of NOBODY is about to be taken over by its workflow.
        is_fresh = and_(column.owner == NOBODY, _is_younger(_FRESH))
        is_left = and_(column.owner.not_in([*living, WORKFLOW]), not_(is_fresh))
        return await self._page(is_left, most, after)

    async def held_for(self, owner: str, age: timedelta, most: int, after: str = "") -> tuple[Claim, ...]:
        """Claims that an owner has had for at least this long, with their calls, by call id, those after `after`."""
        return await self._page(and_(column.owner == owner, not_(_is_younger(age))), most, after)

    async def _page(self, which: ColumnElement[bool], most: int, after: str) -> tuple[Claim, ...]:
        query = select(claims).where(which, column.call_id > after).order_by(column.call_id).limit(most)
        return tuple(map(_claim, await self._database.mappings(query)))

    async def take_over(self, claim: Claim, owner: str) -> bool:
        """Give the claim to another owner. False if another one was quicker, or the call has ended."""
        mine = update(claims).filter_by(call_id=claim.call_id, owner=claim.owner, number=claim.number)
        return bool(await self._database.change(mine.values(owner=owner, number=claim.number + 1)))

    async def give_away(self, call_id: str, owner: str) -> None:
        """Release the call, so that a workflow of its own takes it over."""
        mine = update(claims).filter_by(call_id=call_id, owner=owner)
        await self._database.change(mine.values(owner=NOBODY, number=column.number + 1))


def _is_younger(age: timedelta) -> ColumnElement[bool]:
    """Whether a claim is younger than `age`. One from the future is not: a clock was set back, and it would stay young for long."""
    return column.claimed_at.between(timestamp(now() - age), timestamp(now() + age))


async def delete_claims(connection: AsyncConnection, ended: Sequence[str]) -> None:
    """Remove the claims of ended calls, with what their callers sent."""
    await connection.execute(_delete(), {"calls": ended})


async def put_claims(connection: AsyncConnection, new: Sequence[Claim]) -> None:
    """Write the claims that carry their call, unless the call is already claimed."""
    await insert_new(connection, claims, [_row(claim, claim.call) for claim in new if claim.call is not None])


async def held_claims(connection: AsyncConnection, call_ids: Sequence[str], *, lock: bool = False) -> Mapping[str, Claim]:
    """Current claims by call id. With `lock` they stay unchanged until the transaction ends."""
    if not call_ids:
        return {}
    rows = await connection.execute(_LOCKED if lock else _HELD, {"calls": call_ids})
    return {row.call_id: Claim(row.call_id, row.fingerprint, row.owner, row.number, row.cancelled_at is not None) for row in rows}


@dataclass(slots=True)
class _Asked:
    claim: Claim
    row: dict[str, object]
    found: Claim
    standing: Standing = field(default="held")


async def _take(connection: AsyncConnection, unordered: Sequence[_Asked]) -> None:
    # Doors that claim the same calls lock the rows in the same order, so they cannot deadlock.
    asked = sorted(unordered, key=lambda one: one.claim.call_id)
    while asked:
        await insert_new(connection, claims, [one.row for one in asked])
        ids = [one.claim.call_id for one in asked]
        held = await held_claims(connection, ids)
        settled = set((await connection.execute(_SETTLED, {"calls": ids})).scalars())
        if settled:
            await delete_claims(connection, sorted(settled))
        for one in asked:
            one.found = held.get(one.claim.call_id, one.claim)
            is_ours = one.found.owner == one.claim.owner
            one.standing = "settled" if one.claim.call_id in settled else "ours" if is_ours else "held"
        # On PostgreSQL another door may withdraw a claim between our statements. Then the call is free: try again.
        asked = [one for one in asked if one.claim.call_id not in held and one.claim.call_id not in settled]


@dataclass(slots=True)
class _Looked:
    call_id: str
    is_known: bool = False


async def _look(connection: AsyncConnection, asked: Sequence[_Looked]) -> None:
    ids = [one.call_id for one in asked]
    known = {*await held_claims(connection, ids), *(await connection.execute(_RECORDED, {"calls": ids})).scalars()}
    for one in asked:
        one.is_known = one.call_id in known


@lru_cache
def _delete() -> Delete:
    return delete(claims).where(column.call_id.in_(bindparam("calls", expanding=True)))


def _row(claim: Claim, call: ToolCall) -> dict[str, object]:
    return {
        "call_id": claim.call_id,
        "fingerprint": claim.fingerprint,
        "call": call.model_dump_json(exclude_defaults=True),
        "owner": claim.owner,
        "number": claim.number,
        "claimed_at": claim.claimed_at or timestamp(),
        "cancelled_at": timestamp() if claim.is_cancelled else None,
    }


def _claim(row: RowMapping) -> Claim:
    is_cancelled = row["cancelled_at"] is not None
    return Claim(row["call_id"], row["fingerprint"], row["owner"], row["number"], is_cancelled, _call(row["call"]))


def _call(text: str) -> ToolCall | None:
    """None if another version of the service wrote it and this one cannot read it."""
    try:
        return ToolCall.model_validate_json(text)
    except ValidationError:
        return None
