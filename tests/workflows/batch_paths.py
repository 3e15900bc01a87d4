"""The paths of a batch.

Its calls are children on the shared queue, where `steps` serve them by tool id.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pydantic import JsonValue
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

from tests.workflows.callback_paths import Deliveries
from tests.workflows.ends import Walk
from tests.workflows.stage import AnyHandle, Stage
from tests.workflows.steps import Steps, plan_of
from toolagent.client import names
from toolagent.contracts.batches import CallLook, LookRequest, LookState
from toolagent.contracts.calls import ErrorType, ToolError
from toolagent.core.calls.idempotency import call_id_for_key
from toolagent.core.calls.results import failed, succeeded
from toolagent_service import step_names
from toolagent_service.contracts.steps import Admission, AdmitRequest, Admitted, Answered

__all__ = ["PATHS", "children"]

ECHO: JsonValue = {"tool_id": "echo", "params": {"n": 1}}
BROKEN: JsonValue = {"tool_id": "broken"}
WAITING: JsonValue = {"tool_id": "waiting"}
SHARED: JsonValue = {"tool_id": "echo", "idempotency_key": "shared"}


@dataclass
class ByToolId(Steps):
    """`echo` answers at once, `broken` is refused, `waiting` waits for a worker that never comes."""

    looked: set[str] = field(default_factory=set[str])

    @activity.defn(name=step_names.ADMIT)
    async def admit(self, request: AdmitRequest) -> Admission:
        at, tool_id = activity.info().started_time, request.call.tool_id
        if tool_id == "waiting":
            return Admitted(plan=plan_of(request, queue="nobody"))
        if tool_id == "broken":
            error = ToolError(type=ErrorType.TOOL_NOT_FOUND, message="There is no such tool.")
            return Answered(result=failed(request.call_id, tool_id, error, at))
        return Answered(result=succeeded(request.call_id, tool_id, request.call.params, at, execution_time=0.01, metadata={}))

    @activity.defn(name=step_names.LOOK_AT_CALL)
    async def look_at_call(self, request: LookRequest) -> CallLook:
        """A call of another caller, which ends between the first look and the second."""
        state = LookState.ENDED if request.call_id in self.looked else LookState.RUNNING
        self.looked.add(request.call_id)
        return CallLook(state=state, status="success" if state is LookState.ENDED else "")


@asynccontextmanager
async def children(client: Client) -> AsyncGenerator[None]:
    """Serves the calls of all batches, and delivers callbacks."""
    steps = ByToolId()
    activities = [steps.admit, steps.place, steps.settle, steps.call_tool, steps.look_at_call]
    deliveries = Deliveries()
    activities += [deliveries.deliver_callback, deliveries.note_callback]
    async with Stage(client, names.TASK_QUEUE).workers(activities, step_names.LOOKS_QUEUE, step_names.CALLBACKS_QUEUE):
        yield


async def begin(stage: Stage, batch: JsonValue) -> AnyHandle:
    everybodys = Stage(stage.client, names.TASK_QUEUE)
    return await everybodys.start(names.RUN_TOOLS, batch, workflow_id=f"batch-{stage.queue}")


async def play(stage: Stage, batch: JsonValue) -> AnyHandle:
    handle = await begin(stage, batch)
    await handle.result()
    return handle


async def parallel(stage: Stage) -> AnyHandle:
    return await play(stage, {"calls": [ECHO, BROKEN, ECHO]})


async def told(stage: Stage) -> AnyHandle:
    return await play(stage, {"calls": [ECHO], "mode": "async", "callback_url": "https://example.com/told"})


async def ordered(stage: Stage) -> AnyHandle:
    return await play(stage, {"calls": [ECHO, BROKEN, ECHO], "ordered": True})


async def stopped_on_error(stage: Stage) -> AnyHandle:
    return await play(stage, {"calls": [ECHO, BROKEN, ECHO], "ordered": True, "stop_on_error": True})


async def malformed(stage: Stage) -> AnyHandle:
    return await play(stage, {"calls": []})


async def made_elsewhere(stage: Stage) -> AnyHandle:
    """One of its keys belongs to a call that another caller has begun."""
    everybodys = Stage(stage.client, names.TASK_QUEUE)
    other = await everybodys.start(names.INVOKE_TOOL, SHARED, workflow_id=call_id_for_key(None, "shared"))
    await other.result()
    return await play(stage, {"calls": [SHARED]})


async def cancelled(stage: Stage) -> AnyHandle:
    handle = await begin(stage, {"calls": [WAITING]})
    async with asyncio.timeout(60):
        async for event in handle.fetch_history_events(wait_new_event=True):
            if event.event_type == EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
                break
    await handle.cancel()
    await handle.result()
    return handle


PATHS: Mapping[str, Walk] = {
    "parallel": Walk(parallel, "success tool_not_found success"),
    "told": Walk(told, "success"),
    "ordered": Walk(ordered, "success tool_not_found success"),
    "stopped-on-error": Walk(stopped_on_error, "success tool_not_found skipped"),
    "malformed": Walk(malformed, "validation_error"),
    "made-elsewhere": Walk(made_elsewhere, "success"),
    "cancelled": Walk(cancelled, "cancelled"),
}
