"""The table `poisonous_inputs`: parameters of calls that ended a tool's process, and which of them are quarantined."""

import hashlib
import json
from datetime import timedelta

from pydantic import JsonValue
from sqlalchemy import RowMapping, and_, delete, exists, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.clock import database_time
from engine.store.database import DatabaseAccess
from engine.store.repair_tables import poisonous_inputs
from engine.store.rows.upserts import upsert
from engine.store.tables import calls, tool_versions
from toolagent.contracts.quarantine import QuarantinedInput
from toolagent.contracts.records import CallRecord

column = poisonous_inputs.c

CRASHES = 2
"""Crashes until an input is quarantined."""

_MOST = 100
"""Most quarantined inputs of a version. A version with more fails generally and needs a repair."""

_MOST_NOTED = 1_000
"""Most recorded inputs of a version. They are kept for days and may be large."""

_MOST_PARAMS = 65_536
_LOOKED_AT = 200
_FORGOTTEN = timedelta(days=7)
"""Single crashes are removed after this time."""


def input_of(params: dict[str, JsonValue]) -> str:
    """A hash of the parameters of a record, which have defaults filled in and secrets masked."""
    text = json.dumps(params, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class QuarantineTable(DatabaseAccess):
    """Writes are idempotent. All methods raise StoreUnavailableError."""

    async def note_crash(self, record: CallRecord, error: str, *, alone: bool = True) -> bool:
        """Record that the tool's process ended during this sent call. Returns whether its input is quarantined now.

        A call that was `alone` in the process counts as often as it was sent: a repeatable call is sent again after each crash.

        Only consecutive crashes count: if the same input succeeded since the first crash, another call caused that crash.
        """
        key = {"tool_id": record.tool_id, "version": record.version, "input": input_of(record.params)}
        async with self._database.write(alone=f"quarantine of {record.tool_id}") as connection:
            row = (await connection.execute(select(poisonous_inputs).filter_by(**key))).mappings().one_or_none()
            if row is not None and (row["quarantined_at"] or record.call_id in json.loads(row["crashes"])):
                return row["quarantined_at"] is not None
            if row is not None and await _was_answered(connection, record, key["input"], row["first_at"]):
                row = None
            crashes: dict[str, int] = json.loads(row["crashes"]) if row is not None else {}
            crashes[record.call_id] = await _sends(connection, record.call_id) if alone else 1
            noted, quarantined = await _counts(connection, record)
            if row is None and noted >= _MOST_NOTED:
                return False
            at = (await connection.execute(select(database_time()))).scalar_one()
            is_poison = sum(crashes.values()) >= CRASHES and quarantined < _MOST
            params = json.dumps(record.params)
            values = {
                "crashes": json.dumps(crashes),
                "params": params if len(params) <= _MOST_PARAMS else None,
                "error": error,
                "first_at": row["first_at"] if row is not None else at,
                "quarantined_at": at if is_poison else None,
            }
            await upsert(connection, poisonous_inputs, {**key, **values})
        return is_poison

    async def of_tool(self, tool_id: str, version: str | None = None) -> tuple[QuarantinedInput, ...]:
        """Quarantined inputs, the newest first."""
        query = select(poisonous_inputs).where(_IS_QUARANTINED, column.tool_id == tool_id)
        if version is not None:
            query = query.where(column.version == version)
        ordered = query.order_by(column.quarantined_at.desc(), column.input)
        return tuple(map(_quarantined, await self._database.mappings(ordered)))

    async def all_inputs(self) -> tuple[tuple[str, str, str], ...]:
        """Tool, version and input of every quarantined input."""
        columns = (column.tool_id, column.version, column.input)
        rows = await self._database.rows(select(*columns).where(_IS_QUARANTINED))
        return tuple((tool_id, version, given) for tool_id, version, given in rows)

    async def versions(self) -> frozenset[tuple[str, str]]:
        """Tools and versions with quarantined inputs."""
        return frozenset((tool_id, version) for tool_id, version, _ in await self.all_inputs())

    async def lift(self, tool_id: str, given: str | None = None) -> int:
        """Release this input, or all inputs of the tool. Returns how many were quarantined."""
        of_it = [column.tool_id == tool_id, *([column.input == given] if given else [])]
        async with self._database.write() as connection:
            quarantined = await connection.scalar(select(func.count()).select_from(poisonous_inputs).where(*of_it, _IS_QUARANTINED)) or 0
            await connection.execute(delete(poisonous_inputs).where(*of_it))
        return quarantined

    async def forget(self) -> None:
        """Remove old single crashes, and the inputs of removed versions."""
        same = and_(tool_versions.c.tool_id == column.tool_id, tool_versions.c.version == column.version)
        async with self._database.write() as connection:
            single = and_(column.quarantined_at.is_(None), column.first_at < database_time(-_FORGOTTEN))
            old = or_(single, ~exists().where(same))
            if await connection.scalar(select(func.count()).select_from(poisonous_inputs).where(old)):
                await connection.execute(delete(poisonous_inputs).where(old))


_IS_QUARANTINED = column.quarantined_at.is_not(None)


async def _sends(connection: AsyncConnection, call_id: str) -> int:
    return max(1, await connection.scalar(select(calls.c.sends).filter_by(call_id=call_id)) or 0)


async def _was_answered(connection: AsyncConnection, record: CallRecord, given: str, since: str) -> bool:
    good = (calls.c.tool_id == record.tool_id, calls.c.version == record.version, calls.c.is_success.is_(True), calls.c.settled_at >= since)
    if await connection.scalar(select(exists().where(*good, calls.c.fingerprint == record.fingerprint))):
        return True
    # The caller may have written the same input differently, for example without defaults.
    newest = select(calls.c.params).where(*good).order_by(calls.c.created_at.desc()).limit(_LOOKED_AT)
    return any(input_of(json.loads(params)) == given for params in await connection.scalars(newest))


async def _counts(connection: AsyncConnection, record: CallRecord) -> tuple[int, int]:
    """How many inputs of the version are recorded, and how many of them are quarantined."""
    counts = select(func.count(), func.count(column.quarantined_at)).filter_by(tool_id=record.tool_id, version=record.version)
    noted, quarantined = (await connection.execute(counts)).one()
    return noted, quarantined


def _quarantined(row: RowMapping) -> QuarantinedInput:
    crashes: dict[str, int] = json.loads(row["crashes"])
    return QuarantinedInput.model_validate(
        {
            **row,
            "params": json.loads(row["params"]) if row["params"] else None,
            "crashes": sum(crashes.values()),
            "call_ids": tuple(crashes),
        }
    )
