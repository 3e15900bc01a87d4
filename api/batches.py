"""Starts batches of calls, and answers with their results."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Header
from pydantic import Field, JsonValue
from starlette.responses import Response

from api.calls import TWO_KEYS, accepted, require_callback, require_size
from api.errors import bad_field, json_response
from api.forms import NO_CONTROLS
from api.ports import Dependencies, Injected
from api.reading.bodies import STRICT, CallerBody, strict
from api.security import MAX_BATCH_BYTES
from api.views.tasks import result_of_call
from toolagent.client.batches import collected
from toolagent.client.failures import BrokenOffError
from toolagent.contracts.batches import MAX_BATCH_CALLS, BatchedCall, ToolBatch
from toolagent.contracts.callbacks import CallbackUrl
from toolagent.contracts.calls import CallMode, IdempotencyKey, ToolResult
from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId
from toolagent.core.calls.results import failed

_FILES = " POST /files takes files."
_EXAMPLE: JsonValue = {
    "calls": [
        {"tool_id": "calculator", "params": {"expression": "6 * 7"}},
        {"tool_id": "echo", "params": {"message": "hello"}, "idempotency_key": "order-17"},
    ],
    "stop_on_error": True,
}


class BatchedCallBody(Contract):
    """A call of a batch: as for `/run_tool`, without `mode`."""

    model_config = STRICT

    tool_id: ToolId
    params: dict[str, JsonValue] = {}
    version: Annotated[str | None, Field(max_length=64, description="As for `/run_tool`.", pattern=NO_CONTROLS)] = None
    timeout_s: Annotated[float | None, Field(gt=0, le=86_400)] = None
    idempotency_key: Annotated[IdempotencyKey | None, Field(description="The same key again, in or out of a batch, is the same call.")] = (
        None
    )
    caller: CallerBody = CallerBody()
    priority: Annotated[int, Field(ge=1, le=5)] = 3


class RunToolsBody(Contract):
    """Up to 100 calls. The header `Idempotency-Key` may stand for `idempotency_key`, which names the whole batch."""

    model_config = strict(_EXAMPLE)

    # Not strict, because JSON has no tuples.
    calls: Annotated[tuple[BatchedCallBody, ...], Field(min_length=1, max_length=MAX_BATCH_CALLS, strict=False)]
    ordered: Annotated[bool, Field(description="One after the other, in this order; else in parallel.")] = False
    stop_on_error: Annotated[bool, Field(description="After a failure no further call is begun.")] = False
    mode: Annotated[CallMode, Field(strict=False)] = CallMode.SYNC
    idempotency_key: IdempotencyKey | None = None
    caller: Annotated[CallerBody, Field(description="Owns the key, and is the caller of every call that names none.")] = CallerBody()
    callback_url: Annotated[
        CallbackUrl | None, Field(description="Where ids and states are posted when all calls of a batch of mode `async` have ended.")
    ] = None


async def _take(
    body: RunToolsBody,
    dependencies: Injected,
    idempotency_key: Annotated[
        IdempotencyKey | None, Header(alias="Idempotency-Key", description="The same key again is the same batch, and runs once.")
    ] = None,
) -> ToolBatch:
    """Raises Refusal when header and body name two keys, and when a call or the whole is too large."""
    if idempotency_key is not None and body.idempotency_key not in {None, idempotency_key}:
        raise bad_field("Idempotency-Key", TWO_KEYS)
    await require_callback(body.callback_url, body.mode, dependencies)
    asked = body.model_dump(exclude_unset=True) | {"idempotency_key": idempotency_key or body.idempotency_key}
    batch = ToolBatch.model_validate(asked)
    for place, call in enumerate(batch.calls):
        require_size(f"calls.{place}", call, dependencies.limits.max_params_bytes, _FILES)
    require_size("The batch", batch, MAX_BATCH_BYTES, _FILES)
    return batch


TakenBatch = Annotated[ToolBatch, Depends(_take)]


async def batch_answer(dependencies: Dependencies, batch: ToolBatch) -> Response:
    """Answers 202 with the task for `mode: async`, otherwise 200 with all results. Raises ToolAgentError."""
    handle = await dependencies.client.start_batch(batch)
    headers = {"Location": f"/tasks/{handle.batch_id}", "X-Batch-Id": handle.batch_id}
    if batch.mode is CallMode.ASYNC:
        known = await handle.task() if batch.idempotency_key else None
        return json_response(accepted(handle.batch_id, known), 202, headers)
    end = await dependencies.client.batch_end(handle.batch_id)
    if end.error is not None:
        raise BrokenOffError(failed(handle.batch_id, "", end.error, datetime.now(UTC)))

    async def fetch(call: BatchedCall) -> ToolResult:
        return await result_of_call(dependencies, call)

    return json_response(await collected(end, fetch), headers=headers)
