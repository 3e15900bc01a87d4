"""A call that has begun at its admission, and the activity that waits for it: on a real Temporal server with scripted steps."""

import asyncio
import uuid
from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from tests.workflows.steps import Deliberate, cancelled
from tests.workflows.test_invoke_tool import running, start
from toolagent.contracts.calls import ToolResult
from toolagent_service.contracts.steps import CallRequest, Finished, Placement
from workflows import options

SCHEDULED, CANCELLED = EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED


def begun() -> Deliberate:
    steps = Deliberate(queue=f"busy-{uuid.uuid4().hex[:8]}", host="host-busy", is_begun=True)
    steps.released.set()
    return steps


async def until(handle: WorkflowHandle[object, ToolResult], kind: EventType.ValueType) -> HistoryEvent:
    async with asyncio.timeout(30):
        async for event in handle.fetch_history_events(wait_new_event=True):
            if event.event_type == kind:
                return event
    raise AssertionError("It has ended without that.")


@pytest.mark.promise("host-affinity")
async def test_who_waits_for_a_begun_call_is_taken_first_and_stays_with_its_host(temporal: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "HOST_PATIENCE", timedelta(seconds=1))
    steps = begun()
    steps.elsewhere = Placement(queue=f"q-{uuid.uuid4().hex[:8]}", host="host-busy")
    async with running(temporal, steps, steps.elsewhere.queue) as own:
        handle = await start(temporal, own)
        await handle.result()
    assert [request.prefer for request in steps.placed] == ["host-busy"]
    assert (await until(handle, SCHEDULED)).activity_task_scheduled_event_attributes.priority.priority_key == 1


async def test_a_begun_call_that_is_lost_with_its_host_goes_on_elsewhere(temporal: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "_HEARTBEAT", timedelta(seconds=1))

    async def silent_at_first(request: CallRequest) -> Finished:
        if not request.lost:
            await asyncio.Event().wait()
        return Finished()

    steps = begun()
    steps.behaviour, steps.elsewhere = silent_at_first, Placement(queue=steps.queue, host="host-alive")
    async with running(temporal, steps, steps.queue) as own:
        await (await start(temporal, own)).result()
    assert [request.prefer for request in steps.placed] == [None]


@pytest.mark.promise("cancel-closes")
async def test_a_begun_call_that_is_cancelled_before_anybody_waits_for_it_is_ended_by_who_makes_it(temporal: Client) -> None:
    async def ends(request: CallRequest) -> Finished:
        return cancelled() if request.is_cancelled else Finished(output="it went on")

    steps = begun()
    steps.behaviour = ends
    async with running(temporal, steps) as own:
        handle = await start(temporal, own)
        await until(handle, SCHEDULED)
        await handle.cancel()
        await until(handle, CANCELLED)
        async with Worker(temporal, task_queue=steps.queue, activities=[steps.call_tool]):
            result = await handle.result()
    assert result.error == cancelled().error
