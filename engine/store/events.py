"""The table `events`: what happened to tools and calls."""

import json
from datetime import timedelta

import structlog
from sqlalchemy import ColumnElement, RowMapping, and_, case, func, select

from engine.store.clock import now, timestamp
from engine.store.database import DatabaseAccess
from engine.store.rows.upserts import insert_new
from engine.store.tables import events
from engine.store.tool_alerts import OF_TOOLS
from toolagent.contracts.records import Event, EventType

column = events.c

_ALERTS = (EventType.HEALTH_ALERT.value, EventType.SESSION_ALERT.value)

LONGEST_ALERT = 1_000
"""Most characters of an alert's reason. It may come from a provider, and log and status show it."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class EventTable(DatabaseAccess):
    """An event's id identifies what happened: a second event with the same id is ignored."""

    async def add(self, new: tuple[Event, ...]) -> None:
        async with self._database.write() as connection:
            await insert_new(connection, events, [event_row(event) for event in new])

    async def warn(self, alert: Event) -> None:
        """Record an alert for operators. The first time, log it too."""
        async with self._database.write() as connection:
            known = await connection.scalar(select(column.event_id).filter_by(event_id=alert.event_id))
            await insert_new(connection, events, [event_row(alert)])
        if known is None:
            _log.warning(alert.event_type.value, tool_id=alert.tool_id, details=alert.details)

    async def alerts(self, within: timedelta, most: int) -> tuple[Event, ...]:
        """Alerts of tools, sessions and providers, the newest first; not those of single calls.

        Only the last health alert and the last repair of each tool: a tool that fails repeatedly would hide the others.
        """
        alone = and_(column.call_id.is_(None), column.event_type.in_(_ALERTS), column.at >= timestamp(now() - within))
        is_health = column.event_type == EventType.HEALTH_ALERT.value
        subject = case((is_health, column.tool_id), else_=column.event_id)
        newest = (column.at.desc(), column.event_id)
        kind = (is_health, column.event_id.startswith(OF_TOOLS))
        place = func.row_number().over(partition_by=(*kind, subject), order_by=newest)
        ranked = select(column.event_id, place.label("place")).where(alone).subquery()
        shown = select(ranked.c.event_id).where(ranked.c.place == 1)
        query = select(events).where(column.event_id.in_(shown)).order_by(*newest).limit(most)
        return tuple(map(_event, await self._database.mappings(query)))

    async def of_call(self, call_id: str) -> tuple[Event, ...]:
        """The events of one call, in order."""
        return await self._find(column.call_id == call_id)

    async def of_tool(self, tool_id: str) -> tuple[Event, ...]:
        """The events of one tool and of its calls, in order."""
        return await self._find(column.tool_id == tool_id)

    async def latest_alert(self, tool_id: str) -> Event | None:
        """The last health alert of a tool; None if there is none."""
        alerts = select(events).filter_by(tool_id=tool_id, event_type=EventType.HEALTH_ALERT.value)
        row = await self._database.mapping(alerts.order_by(column.at.desc(), column.event_id.desc()).limit(1))
        return _event(row) if row is not None else None

    async def _find(self, condition: ColumnElement[bool]) -> tuple[Event, ...]:
        query = select(events).where(condition).order_by(column.at, column.event_id)
        rows = await self._database.mappings(query)
        return tuple(map(_event, rows))


def _event(row: RowMapping) -> Event:
    return Event.model_validate({**row, "details": json.loads(row["details"]) if row["details"] else None})


def event_row(event: Event) -> dict[str, object]:
    return {
        "event_id": event.event_id,
        "event_type": event.event_type.value,
        "tool_id": event.tool_id,
        "call_id": event.call_id,
        "at": timestamp(event.at),
        "details": json.dumps(event.details) if event.details is not None else None,
    }
