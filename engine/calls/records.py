"""The record of a call, without its result."""

from functools import partial

from pydantic import JsonValue

from engine.store.clock import now
from engine.validation.long_values import walked
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.records import CallRecord
from toolagent.core.calls.idempotency import fingerprint
from toolagent.core.schemas import mask_secrets, mentions_secrets
from toolagent_service.contracts.steps import AdmitRequest, CallPlan

LEFT_BEHIND = "left_behind"
"""Key in the `metadata` of a result for files that could not be removed. The answer counts nevertheless: the tool may have acted."""


async def record_of(plan: CallPlan, manifest: ToolManifest | None, workflow_id: str, run_id: str) -> CallRecord:
    """The record of a call before its end, with secrets masked."""
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
    """The parameters with secrets masked."""
    return await walked(params, partial(mask_secrets, schema, params)) if mentions_secrets(schema) else params


def record_of_refused(request: AdmitRequest) -> CallRecord:
    """Without the parameters: if they do not fit the schema, it is unknown which are secret."""
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
