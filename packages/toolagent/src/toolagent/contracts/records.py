"""Records of calls, events, files, and faults of the catalog."""

from datetime import datetime
from enum import StrEnum

from pydantic import JsonValue

from toolagent.contracts.calls import Caller, ToolResult
from toolagent.contracts.contract import Contract

__all__ = ["CallRecord", "CatalogFault", "Event", "EventType", "StoredFile"]


class CallRecord(Contract):
    """The stored record of a call, which outlives its workflow. Secret parameters are masked."""

    call_id: str
    tool_id: str
    version: str
    fingerprint: str
    workflow_id: str
    run_id: str
    params: dict[str, JsonValue] = {}
    caller: Caller = Caller()
    sent_at: datetime | None = None
    created_at: datetime
    settled_at: datetime | None = None
    result: ToolResult | None = None


class EventType(StrEnum):
    """Kinds of events of tools and calls."""

    TOOL_ADDED = "tool_added"
    TOOL_UPDATED = "tool_updated"
    TOOL_REMOVED = "tool_removed"
    LOAD_ERROR = "load_error"
    VALIDATION_ERROR = "validation_error"
    EXECUTION_STARTED = "execution_started"
    EXECUTION_COMPLETED = "execution_completed"
    EXECUTION_FAILED = "execution_failed"
    CALLBACK_DELIVERED = "callback_delivered"
    CALLBACK_FAILED = "callback_failed"
    HEALTH_ALERT = "health_alert"
    SESSION_ALERT = "session_alert"


class Event(Contract):
    """An event. `event_id` is derived from the event, so a repetition is recorded once."""

    event_id: str
    event_type: EventType
    tool_id: str
    call_id: str | None = None
    at: datetime
    details: JsonValue = None


class StoredFile(Contract):
    """A file in the content store. `size` is in bytes."""

    file_id: str
    name: str
    media_type: str
    size: int
    sha256: str
    created_at: datetime


class CatalogFault(Contract):
    """A fault of a file of the catalog."""

    file: str
    field: str
    reason: str
