"""How a call ends: its output is checked, its result made, and both are written down (DESIGN §3, settle)."""

from pydantic import JsonValue

from engine.calls.admission import ToolLookup
from engine.store.calls import CallTable
from engine.store.clock import now
from engine.validation.schemas import issues_of
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.records import CallRecord, Event, EventType
from toolagent.contracts.steps import CallPlan, Finished, SettleRequest
from toolagent.core.results import failed, succeeded
from toolagent.core.schemas import mask_secrets

__all__ = ["Settlements", "record_of"]


class Settlements:
    """Writes by call id only, so that settling again changes nothing."""

    def __init__(self, lookup: ToolLookup, calls: CallTable) -> None:
        self._lookup = lookup
        self._calls = calls

    async def settle(self, request: SettleRequest) -> ToolResult:
        """The result of the call, after it has been recorded."""
        entry = await self._lookup.entry(request.plan.tool_id, request.plan.version)
        manifest = entry.manifest if entry else None
        result = _result(request.plan, request.outcome, manifest)
        record = record_of(request.plan, manifest, request.workflow_id, request.run_id)
        await self._calls.settle(record, result, _events(request.plan, result))
        return result


def record_of(plan: CallPlan, manifest: ToolManifest | None, workflow_id: str, run_id: str) -> CallRecord:
    """The record of a call as far as it is known before its end; secrets are masked."""
    return CallRecord(
        call_id=plan.call_id,
        tool_id=plan.tool_id,
        version=plan.version,
        fingerprint=plan.fingerprint,
        workflow_id=workflow_id,
        run_id=run_id,
        params=mask_secrets(manifest.input_schema, plan.params) if manifest else {},
        caller=plan.caller,
        created_at=now(),
    )


def _result(plan: CallPlan, outcome: Finished, manifest: ToolManifest | None) -> ToolResult:
    at = outcome.started_at or now()
    metadata: dict[str, JsonValue] = {
        "version": plan.version,
        "host": outcome.host,
        "active_source": outcome.active_source,
        "fast": plan.fast,
    }
    if outcome.error is not None:
        return failed(
            plan.call_id,
            plan.tool_id,
            outcome.error,
            at,
            validation_errors=outcome.validation_errors,
            execution_time=outcome.execution_time,
            metadata=metadata,
        )
    issues = issues_of(manifest.output_schema, outcome.output) if manifest and manifest.output_schema else ()
    if issues:
        listed = "; ".join(f"{issue.path}: {issue.message}" for issue in issues[:3])
        message = f"The tool ran, but its output does not fit its output schema: {listed}"
        error = ToolError(type=ErrorType.OUTPUT_VALIDATION_ERROR, message=message, details={"outcome": "executed"})
        return failed(
            plan.call_id, plan.tool_id, error, at, validation_errors=issues, execution_time=outcome.execution_time, metadata=metadata
        )
    return succeeded(plan.call_id, plan.tool_id, outcome.output, at, execution_time=outcome.execution_time, metadata=metadata)


def _events(plan: CallPlan, result: ToolResult) -> tuple[Event, ...]:
    ended = EventType.EXECUTION_COMPLETED if result.status == "success" else EventType.EXECUTION_FAILED
    details: JsonValue = {"error_type": result.error_type.value} if result.error_type else None
    return (
        Event(
            event_id=f"{plan.call_id}:started",
            event_type=EventType.EXECUTION_STARTED,
            tool_id=plan.tool_id,
            call_id=plan.call_id,
            at=result.executed_at,
        ),
        Event(
            event_id=f"{plan.call_id}:ended",
            event_type=ended,
            tool_id=plan.tool_id,
            call_id=plan.call_id,
            at=now(),
            details=details,
        ),
    )
