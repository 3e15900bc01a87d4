"""The usage of tools, from the records of their calls."""

import math
from datetime import datetime

from sqlalchemy import case, func, select

from engine.store.clock import timestamp
from engine.store.database import DatabaseAccess
from engine.store.tables import calls
from toolagent.contracts.usage import ToolUsage

column = calls.c

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
