"""What is recorded of a call besides its result: its record and its events."""

from datetime import datetime
from functools import partial

from pydantic import JsonValue

from engine.calls.long_values import walked
from engine.store.clock import now
from toolagent.contracts.calls import ErrorType, ToolResult
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.records import CallRecord, Event, EventType
from toolagent.core.calls.idempotency import fingerprint
from toolagent.core.schemas import mask_secrets, mentions_secrets
from toolagent_service.contracts.steps import AdmitRequest, CallPlan

LEFT_BEHIND = "left_behind"
"""In `metadata` of a result: what the tool left that could not be removed. Its answer still counts, as it may have acted."""


async def record_of(plan: CallPlan, manifest: ToolManifest | None, workflow_id: str, run_id: str) -> CallRecord:
    """The record of a call as far as it is known before its end; secrets are masked."""
    return CallRecord(
        call_id=plan.call_id,
        tool_id=plan.tool_id,
        version=plan.version,
        fingerprint=plan.fingerprint,
        workflow_id=workflow_id,
        run_id=run_id,
        params=await masked_of(manifest.input_schema, plan.params) if manifest else {},
        caller=plan.caller,
        created_at=now(),
    )


async def masked_of(schema: JsonSchema, params: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The parameters as the record of a call has them."""
    return await walked(params, partial(mask_secrets, schema, params)) if mentions_secrets(schema) else params


def record_of_refused(request: AdmitRequest) -> CallRecord:
    """Without its parameters: it is not known which are secret when they do not fit the schema."""
    return CallRecord(
        call_id=request.call_id,
        tool_id=request.call.tool_id,
        version=request.call.version or "",
        fingerprint=fingerprint(request.call),
        workflow_id=request.workflow_id,
        run_id=request.run_id,
        caller=request.call.caller,
        created_at=now(),
    )


def events_of(result: ToolResult, *, started: bool) -> tuple[Event, ...]:
    """The events of a call that ended like this."""

    def event(name: str, kind: EventType, at: datetime, details: JsonValue = None) -> Event:
        event_id = f"{result.call_id}:{name}"
        return Event(event_id=event_id, event_type=kind, tool_id=result.tool_id, call_id=result.call_id, at=at, details=details)

    kind = EventType.EXECUTION_COMPLETED if result.status == "success" else EventType.EXECUTION_FAILED
    if result.error_type is ErrorType.VALIDATION_ERROR and not started:
        kind = EventType.VALIDATION_ERROR
    told = [event("started", EventType.EXECUTION_STARTED, result.executed_at)] if started else []
    told.append(event("ended", kind, now(), {"error_type": result.error_type.value} if result.error_type else None))
    if left := result.metadata.get(LEFT_BEHIND):
        # Counted against the tool: repairs and observers read that.
        told.append(event(LEFT_BEHIND, EventType.HEALTH_ALERT, now(), {"error": left}))
    return tuple(told)
