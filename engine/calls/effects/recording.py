"""Records the result with its events, once, however often the call is settled."""

from dataclasses import replace
from datetime import datetime

from pydantic import JsonValue

from engine.calls.effects.ended import Effect, Ended, Places
from engine.calls.records import LEFT_BEHIND
from engine.store.clock import now
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.records import Event, EventType


async def _record(ended: Ended, places: Places) -> Ended:
    events = _events_of(ended.result, started=ended.was_started)
    stands = await places.calls.settle(ended.record, ended.result, events, ended.claim, is_unclaimed=ended.is_unclaimed)
    return replace(ended, result=stands)


def _events_of(result: ToolResult, *, started: bool) -> tuple[Event, ...]:
    """The events of the end of a call."""

    def event(name: str, kind: EventType, at: datetime, details: JsonValue = None) -> Event:
        event_id = f"{result.call_id}:{name}"
        return Event(event_id=event_id, event_type=kind, tool_id=result.tool_id, call_id=result.call_id, at=at, details=details)

    kind = EventType.EXECUTION_COMPLETED if result.status == "success" else EventType.EXECUTION_FAILED
    if result.error_type is ErrorType.VALIDATION_ERROR and not started:
        kind = EventType.VALIDATION_ERROR
    told = [event("started", EventType.EXECUTION_STARTED, result.executed_at)] if started else []
    told.append(event("ended", kind, now(), {"error_type": result.error_type.value} if result.error_type else None))
    if left := result.metadata.get(LEFT_BEHIND):
        # Counts against the tool: repairs and observers read it.
        told.append(event(LEFT_BEHIND, EventType.HEALTH_ALERT, now(), {"error": left}))
    return tuple(told)


EFFECT = Effect("recording", "writes result and events, unless the call has a result: then that stands", _record)
