"""The table `calls`: the record of each call, and the mark that it was sent."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import ColumnElement, Insert, RowMapping, and_, bindparam, case, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningInsert
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from engine.store.claims import Claim, delete_claims, held_claims, put_claims
from engine.store.clock import timestamp
from engine.store.database import CommitUnknownError, Database, DatabaseAccess
from engine.store.events import event_row
from engine.store.file_references import hold_files, holder_of_call, named_files
from engine.store.group_commit import GroupCommit
from engine.store.rows.upserts import dialect_insert, insert_new
from engine.store.tables import calls, events
from toolagent.contracts.calls import Caller, ErrorType, ToolResult
from toolagent.contracts.records import CallRecord, Event
from toolagent.core.failures import StoreUnavailableError

column = calls.c

_AWAY_S = 10.0
"""How long to try to take back a mark whose commit is unknown."""


# For every call: building a statement takes longer than running it.
_RECORD = select(calls).where(column.call_id == bindparam("call"))
_SETTLED = select(column.call_id, column.settled_at).where(column.call_id.in_(bindparam("calls", expanding=True)))


class OvertakenError(Exception):
    """Another owner has taken over the call, and will settle it."""


class CallTable(DatabaseAccess):
    """Every write is keyed by the call id and is idempotent."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._settling = GroupCommit[_Ending](database, _settle)
        self._marking = GroupCommit[_Mark](database, _mark_all)

    async def get(self, call_id: str) -> CallRecord | None:
        row = await self._database.mapping(_RECORD, {"call": call_id})
        return _record(row) if row is not None else None

    async def latest_good(self, tool_id: str, most: int) -> tuple[CallRecord, ...]:
        """Successful calls of a tool, the newest first."""
        return await self._latest(column.tool_id == tool_id, column.is_success.is_(True), most=most)

    async def last_used(self, tool_ids: Collection[str]) -> dict[str, str]:
        """The time of each tool's last call, as text that sorts. A tool without calls is missing."""
        query = select(column.tool_id, func.max(column.created_at)).where(column.tool_id.in_(tool_ids)).group_by(column.tool_id)
        return dict(map(tuple, await self._database.rows(query)))

    async def latest_failed(self, tool_id: str, kinds: Collection[ErrorType], most: int) -> tuple[CallRecord, ...]:
        """Calls of a tool that failed with one of these errors, the newest first. Calls refused before they reached it do not count."""
        return await self._latest(
            column.tool_id == tool_id, column.version != "", column.error_type.in_([kind.value for kind in kinds]), most=most
        )

    async def mark_sent(self, record: CallRecord, *, again: bool = False, claim: Claim | None = None) -> int:
        """Commit a mark before the request is sent. Returns how often it will have been sent, as far as is known.

        Returns 0 if the request must not be sent: the call is settled; or it was marked before and `again` is False; or another owner
        has its `claim` now; or it is cancelled. `sent_at` is the time of the first mark. A claim that carries its call is written too.
        If this raises StoreUnavailableError, nothing is sent and the next attempt may try. Only if the database is lost during the
        commit and stays away, the mark may remain.
        """
        row = _row(record) | {"sent_at": timestamp(), "sends": 1}
        mark = _Mark(row, record.call_id, again, claim, named_files(str(row["params"])))
        try:
            await self._marking.write(mark)
        except CommitUnknownError:
            await self._take_back(record.call_id, str(row["sent_at"]))
            raise
        return mark.sends

    async def unmark_sent(self, call_id: str, claim: Claim | None = None) -> None:
        """Take back the last mark, because that request was certainly not sent. Earlier marks stay. If another owner has the `claim`
        now, all marks stay: the last one is that owner's."""
        left = {"sends": column.sends - 1, "sent_at": case((column.sends > 1, column.sent_at), else_=None)}
        async with self._database.write() as connection:
            if claim is None or claim.is_held_as((await held_claims(connection, [call_id], lock=True)).get(call_id)):
                await connection.execute(update(calls).filter_by(call_id=call_id).values(left))

    async def _take_back(self, call_id: str, sent_at: str) -> None:
        """Remove the first mark of a call if it is the one of this moment. Raises StoreUnavailableError if the database stays away."""
        ours = update(calls).filter_by(call_id=call_id, sent_at=sent_at, sends=1)
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(StoreUnavailableError), stop=stop_after_delay(_AWAY_S), wait=wait_fixed(0.2), reraise=True
        ):
            with attempt:
                await self._database.change(ours.values(sent_at=None, sends=0))

    async def settle(
        self,
        record: CallRecord,
        result: ToolResult,
        what_happened: tuple[Event, ...],
        claim: Claim | None = None,
        *,
        is_unclaimed: bool = False,
    ) -> ToolResult:
        """Write the result of a call and its events in one transaction. `is_unclaimed`: the call never had a claim.

        Returns the result that stands: the first settlement wins, because a caller may have seen it. Raises OvertakenError if another
        owner has the `claim` now and the call has not ended.
        """
        ended = {
            "settled_at": timestamp(),
            "is_success": result.status == "success",
            "error_type": result.error_type.value if result.error_type else None,
            "execution_time": result.execution_time,
            "result": result.model_dump_json(),
        }
        row = _row(record) | ended
        named = named_files(str(row["params"]), str(row["result"]))
        ending = _Ending(row, tuple(map(event_row, what_happened)), record.call_id, named, claim, is_unclaimed)
        await self._settling.write(ending)
        earlier = None if ending.stands else await self.get(record.call_id)
        if ending.is_overtaken and (earlier is None or earlier.result is None):
            raise OvertakenError(record.call_id)
        return earlier.result if earlier is not None and earlier.result is not None else result

    async def _latest(self, *conditions: ColumnElement[bool], most: int) -> tuple[CallRecord, ...]:
        query = select(calls).where(*conditions).order_by(column.created_at.desc(), column.call_id).limit(most)
        rows = await self._database.mappings(query)
        return tuple(map(_record, rows))


@dataclass(slots=True)
class _Ending:
    """The rows of a call's end, and the files that it named or made. `stands`: this was the first settlement."""

    call: Mapping[str, object]
    events: tuple[Mapping[str, object], ...]
    call_id: str
    files: tuple[str, ...]
    claim: Claim | None = None
    is_unclaimed: bool = False
    stands: bool = False
    is_overtaken: bool = False


@dataclass(slots=True)
class _Mark:
    """A mark before a request is sent. `sends` is 0 if it must not be sent. `claim` is the sender's."""

    row: Mapping[str, object]
    call_id: str
    again: bool
    claim: Claim | None
    files: tuple[str, ...]
    sends: int = 0


async def _mark_all(connection: AsyncConnection, unordered: Sequence[_Mark]) -> None:
    for mark in unordered:
        mark.sends = 0  # an attempt that was not committed may have set it
    claimed = sorted((mark.claim for mark in unordered if mark.claim is not None), key=lambda claim: claim.call_id)
    await put_claims(connection, claimed)
    held = await held_claims(connection, [claim.call_id for claim in claimed], lock=True)
    valid = [mark for mark in unordered if mark.claim is None or _may_leave(mark.claim, held.get(mark.call_id))]
    for again in (False, True):
        # A statement takes each call once. Further marks of the same call take further statements.
        turns: list[_Mark] = [mark for mark in valid if mark.again is again]
        while turns:
            once = {mark.call_id: mark for mark in sorted(turns, key=lambda mark: mark.call_id, reverse=True)}
            await _mark_once(connection, once, again=again)
            turns = [mark for mark in turns if once[mark.call_id] is not mark]


def _may_leave(claim: Claim, held: Claim | None) -> bool:
    return held is not None and not held.is_cancelled and claim.is_held_as(held)


async def _mark_once(connection: AsyncConnection, marks: Mapping[str, _Mark], *, again: bool) -> None:
    for mark in marks.values():
        # Keep its files as long as the record of the call.
        await hold_files(connection, holder_of_call(mark.call_id), mark.files)
    rows = [marks[call_id].row for call_id in sorted(marks)]
    for call_id, sends in await connection.execute(_mark(connection.dialect.name, tuple(rows[0]), again=again), rows):
        marks[call_id].sends = sends


async def _settle(connection: AsyncConnection, unordered: Sequence[_Ending]) -> None:
    # Hosts that settle the same calls lock the rows in the same order, so they cannot deadlock.
    claimed = await held_claims(connection, [ending.call_id for ending in unordered if ending.claim is not None], lock=True)
    for ending in unordered:
        ending.is_overtaken = ending.claim is not None and not ending.claim.is_held_as(claimed.get(ending.call_id))
    endings = sorted((ending for ending in unordered if not ending.is_overtaken), key=lambda ending: ending.call_id)
    if not endings:
        return
    # Claims before calls: the order in which marks lock them.
    if claimed_by_some := [ending.call_id for ending in endings if not ending.is_unclaimed]:
        await delete_claims(connection, claimed_by_some)
    written = await connection.execute(_end(connection.dialect.name, tuple(endings[0].call)), [ending.call for ending in endings])
    are_first = written.rowcount == len(endings)
    for ending in endings:
        ending.stands = are_first
    if len(endings) > 1 and not are_first:  # the count does not tell which ones; on PostgreSQL it is not even exact
        settled = (await connection.execute(_SETTLED, {"calls": [ending.call_id for ending in endings]})).all()
        standing = {call_id: settled_at for call_id, settled_at in settled}
        for ending in endings:
            ending.stands = standing.get(ending.call_id) == ending.call["settled_at"]
    await insert_new(connection, events, [event for ending in endings for event in ending.events])
    for ending in endings:
        await hold_files(connection, holder_of_call(ending.call_id), ending.files)


@lru_cache
def _mark(dialect: str, columns: tuple[str, ...], *, again: bool) -> ReturningInsert[str, int]:
    statement = dialect_insert(dialect, calls).values({name: bindparam(name) for name in columns})
    changed = {"sent_at": func.coalesce(column.sent_at, statement.excluded.sent_at), "sends": column.sends + 1}
    # A settled call must not be sent again: its caller has the result.
    is_open = column.settled_at.is_(None)
    may_leave = is_open if again else and_(column.sent_at.is_(None), is_open)
    marked = statement.on_conflict_do_update(index_elements=["call_id"], set_=changed, where=may_leave)
    return marked.returning(column.call_id, column.sends)


@lru_cache
def _end(dialect: str, columns: tuple[str, ...]) -> Insert:
    statement = dialect_insert(dialect, calls).values({name: bindparam(name) for name in columns})
    changed = {name: statement.excluded[name] for name in columns if name not in {"call_id", "created_at"}}
    return statement.on_conflict_do_update(index_elements=["call_id"], set_=changed, where=column.settled_at.is_(None))


def _row(record: CallRecord) -> dict[str, object]:
    return {
        "call_id": record.call_id,
        "tool_id": record.tool_id,
        "version": record.version,
        "fingerprint": record.fingerprint,
        "workflow_id": record.workflow_id,
        "run_id": record.run_id,
        "params": json.dumps(record.params),
        "caller": record.caller.model_dump_json(),
        "caller_id": record.caller.caller_id,
        "conversation_id": record.caller.conversation_id,
        "created_at": timestamp(record.created_at),
    }


def _record(values: RowMapping) -> CallRecord:
    read = {
        "params": json.loads(values["params"]),
        "caller": Caller.model_validate_json(values["caller"]),
        "result": ToolResult.model_validate_json(values["result"]) if values["result"] else None,
    }
    return CallRecord.model_validate({**values, **read})
