"""Health alerts in the table `events`: tools that recently crashed or failed their checks."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, func, select

from engine.store.clock import now, timestamp
from engine.store.database import DatabaseAccess
from engine.store.tables import events, tool_versions, tools

OF_TOOLS = "health_alert:"
"""Prefix of the ids of these events. Others of the same type are about calls or repairs."""

_SKEW = timedelta(minutes=1)
"""Events further in the future come from a clock that was set back."""


@dataclass(frozen=True, slots=True)
class ToolAlert:
    at: datetime
    error: str


class ToolAlerts(DatabaseAccess):
    """Alerts of active versions: earlier ones belong to another version. All methods raise StoreUnavailableError."""

    async def often(self, within: timedelta, times: int) -> Mapping[str, str]:
        """By tool, active versions with at least `times` alerts within this time."""
        query = select(tools.c.tool_id, tools.c.active_version).select_from(_OF_ACTIVE).where(_IS_OF_ACTIVE, _since(now() - within))
        grouped = query.group_by(tools.c.tool_id, tools.c.active_version).having(func.count() >= times)
        return {tool_id: version for tool_id, version in await self._database.rows(grouped)}

    async def of(self, tool_id: str, since: datetime, most: int) -> tuple[ToolAlert, ...]:
        """Alerts of a tool, the newest first."""
        query = (
            select(events.c.at, events.c.details).select_from(_OF_ACTIVE).where(_IS_OF_ACTIVE, _since(since), events.c.tool_id == tool_id)
        )
        rows = await self._database.rows(query.order_by(events.c.at.desc(), events.c.event_id).limit(most))
        return tuple(ToolAlert(datetime.fromisoformat(at), str(json.loads(text)["error"])) for at, text in rows if text)


_ACTIVE = and_(tool_versions.c.tool_id == tools.c.tool_id, tool_versions.c.version == tools.c.active_version)
_OF_ACTIVE = events.join(tools, tools.c.tool_id == events.c.tool_id).join(tool_versions, _ACTIVE)
_IS_OF_ACTIVE = and_(tools.c.removed_at.is_(None), events.c.at >= func.coalesce(tool_versions.c.activated_at, ""))


def _since(moment: datetime) -> ColumnElement[bool]:
    """Uses a range of the primary key, to skip the many events of calls."""
    of_tools = events.c.event_id.between(OF_TOOLS, OF_TOOLS[:-1] + chr(ord(OF_TOOLS[-1]) + 1))
    return and_(of_tools, events.c.at.between(timestamp(moment), timestamp(now() + _SKEW)))
