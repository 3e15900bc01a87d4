"""The table `calls`: the record of each call, and the mark that it was sent."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import JsonValue
from sqlalchemy import RowMapping, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.clock import now, timestamp
from engine.store.database import Database
from engine.store.events import event_row
from engine.store.file_references import hold_files, holder_of_call, named_files
from engine.store.group_commit import GroupCommit
from engine.store.tables import calls, events
from engine.store.upserts import insert_for, insert_new, upsert_all
from toolagent.contracts.calls import Caller, ToolResult
from toolagent.contracts.records import CallRecord, Event

__all__ = ["CallTable"]


class CallTable:
    """Every write is keyed by the call id and may be repeated."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._settling = GroupCommit[_Ending](database, _settle)

    async def get(self, call_id: str) -> CallRecord | None:
        async with self._database.read() as connection:
            row = (await connection.execute(select(calls).where(calls.c.call_id == call_id))).mappings().one_or_none()
        return _record(row) if row is not None else None

    async def mark_sent(self, record: CallRecord) -> bool:
        """Commit that the request is about to leave. False when that was committed before: then it must not be sent again."""
        row, moment = _row(record), timestamp(now())
        async with self._database.write() as connection:
            # They are kept while the call runs, and as long as its record.
            await hold_files(connection, holder_of_call(record.call_id), named_files(str(row["params"])))
            statement = insert_for(connection, calls).values(**row, sent_at=moment)
            marked = await connection.execute(
                statement.on_conflict_do_update(index_elements=["call_id"], set_={"sent_at": moment}, where=calls.c.sent_at.is_(None))
            )
            return marked.rowcount == 1

    async def unmark_sent(self, call_id: str) -> None:
        """Take the mark back, because it is certain that nothing left."""
        async with self._database.write() as connection:
            await connection.execute(update(calls).where(calls.c.call_id == call_id).values(sent_at=None))

    async def settle(self, record: CallRecord, result: ToolResult, what_happened: tuple[Event, ...]) -> None:
        """Write down how a call ended, and the events of it, in one transaction."""
        ended = {
            "settled_at": timestamp(now()),
            "is_success": result.status == "success",
            "error_type": result.error_type.value if result.error_type else None,
            "execution_time": result.execution_time,
            "result": result.model_dump_json(),
        }
        row = _row(record) | ended
        named = named_files(str(row["params"]), str(row["result"]))
        await self._settling.write(_Ending(row, tuple(map(event_row, what_happened)), record.call_id, named))


@dataclass(frozen=True, slots=True)
class _Ending:
    """The rows that say how a call ended, and the files that it named or made."""

    call: Mapping[str, object]
    events: tuple[Mapping[str, object], ...]
    call_id: str
    files: tuple[str, ...]


async def _settle(connection: AsyncConnection, unordered: Sequence[_Ending]) -> None:
    # Two hosts that settle the same calls take their rows in one order, and so never wait for each other.
    endings = sorted(unordered, key=lambda ending: ending.call_id)
    await upsert_all(connection, calls, [ending.call for ending in endings], once=("created_at",))
    await insert_new(connection, events, [event for ending in endings for event in ending.events])
    for ending in endings:
        await hold_files(connection, holder_of_call(ending.call_id), ending.files)


def _row(record: CallRecord) -> dict[str, object]:
    return {
        "call_id": record.call_id,
        "tool_id": record.tool_id,
        "version": record.version,
        "fingerprint": record.fingerprint,
        "workflow_id": record.workflow_id,
        "run_id": record.run_id,
        "params": json.dumps(record.params, ensure_ascii=True),
        "caller": record.caller.model_dump_json(),
        "caller_id": record.caller.caller_id,
        "conversation_id": record.caller.conversation_id,
        "created_at": timestamp(record.created_at),
    }


def _record(values: RowMapping) -> CallRecord:
    params: dict[str, JsonValue] = json.loads(values["params"])
    return CallRecord(
        call_id=values["call_id"],
        tool_id=values["tool_id"],
        version=values["version"],
        fingerprint=values["fingerprint"],
        workflow_id=values["workflow_id"],
        run_id=values["run_id"],
        params=params,
        caller=Caller.model_validate_json(values["caller"]),
        sent_at=_moment(values["sent_at"]),
        created_at=datetime.fromisoformat(values["created_at"]),
        settled_at=_moment(values["settled_at"]),
        result=ToolResult.model_validate_json(values["result"]) if values["result"] else None,
    )


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
