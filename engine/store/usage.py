"""The usage of tools and the calls of conversations, from the records of calls."""

import math
from collections import Counter
from datetime import datetime

from sqlalchemy import case, func, select

from engine.store.clock import timestamp
from engine.store.database import DatabaseAccess
from engine.store.tables import calls
from toolagent.contracts.calls import Caller
from toolagent.contracts.usage import CallListing, RecordedCall, ToolUsage

column = calls.c

_LISTED = tuple(column[name] for name in RecordedCall.model_fields)

_P95 = 0.95


class UsageTable(DatabaseAccess):
    """Reads the table `calls`, which has all calls, also those of lanes, batches and sessions."""

    async def of_tool(self, tool_id: str, since: datetime | None = None) -> ToolUsage:
        """Usage over all recorded calls, or those since then. Raises StoreUnavailableError."""
        told = [column.tool_id == tool_id, *([column.created_at >= timestamp(since)] if since else [])]
        # Calls refused before they reached the tool have no time.
        timed = [*told, column.execution_time > 0]
        ended = func.sum(case((column.settled_at.is_not(None), 1), else_=0))
        good = func.sum(case((column.is_success.is_(True), 1), else_=0))
        async with self._database.read() as connection:
            counts = select(func.count(), ended, good, func.max(column.created_at)).select_from(calls).where(*told)
            total, settled, succeeded, last = (await connection.execute(counts)).one()
            kinds = select(column.error_type, func.count()).where(*told, column.error_type.is_not(None)).group_by(column.error_type)
            errors = {str(kind): count for kind, count in await connection.execute(kinds.order_by(column.error_type))}
            times, average = (await connection.execute(select(func.count(), func.avg(column.execution_time)).where(*timed))).one()
            slowest = select(column.execution_time).where(*timed).order_by(column.execution_time)
            p95 = await connection.scalar(slowest.limit(1).offset(math.ceil(_P95 * times) - 1)) if times else None
        failed = (settled or 0) - (succeeded or 0)
        return ToolUsage(
            tool_id=tool_id,
            since=since,
            calls=total,
            running=total - (settled or 0),
            succeeded=succeeded or 0,
            failed=failed,
            errors=errors,
            error_rate=failed / settled if settled else None,
            average_s=average,
            p95_s=p95,
            last_used=datetime.fromisoformat(last) if last else None,
        )

    async def of_calls(self, conversation_id: str | None, tool_id: str | None, most: int) -> CallListing:
        """Calls of this conversation and this tool, if given; the newest so many. Raises StoreUnavailableError."""
        wanted = {"conversation_id": conversation_id, "tool_id": tool_id}
        told = [column[name] == value for name, value in wanted.items() if value is not None]
        newest = select(*_LISTED).where(*told).order_by(column.created_at.desc(), column.call_id.desc()).limit(most)
        counts = select(column.tool_id, column.is_success, func.count()).where(*told).group_by(column.tool_id, column.is_success)
        async with self._database.read() as connection:
            found = [{**row, "caller": _shown(row["caller"])} for row in (await connection.execute(newest)).mappings()]
            counted = (await connection.execute(counts.order_by(column.tool_id))).all()
        good, bad = (sum(count for _, is_success, count in counted if is_success is kind) for kind in (True, False))
        usage: Counter[str] = Counter()
        for name, _, count in counted:
            usage[name] += count
        return CallListing(
            total_calls=usage.total(),
            successful_calls=good,
            failed_calls=bad,
            success_rate=round(100 * good / (good + bad), 2) if good + bad else 100.0,
            tool_usage=usage,
            calls=tuple(map(RecordedCall.model_validate, found)),
        )


def _shown(caller: str) -> Caller:
    """Without its variables: they may be secret, and large."""
    return Caller.model_validate_json(caller).model_copy(update={"variables": {}})
