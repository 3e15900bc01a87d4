"""Alerts about sessions of groups."""

from pydantic import JsonValue

from engine.store.clock import now
from engine.store.events import LONGEST_ALERT, EventTable
from toolagent.contracts.records import Event, EventType
from toolagent_service.agents.coding_log import shown_text


async def alert(events: EventTable, event_id: str, tool_id: str, reason: str, **details: JsonValue) -> None:
    """Records an alert, and logs it the first time. `tool_id` is the tool of the stop, if it is known."""
    details["reason"] = shown_text(reason, LONGEST_ALERT)
    await events.warn(Event(event_id=event_id, event_type=EventType.SESSION_ALERT, tool_id=tool_id, at=now(), details=details))
