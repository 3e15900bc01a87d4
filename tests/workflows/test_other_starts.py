"""Any Temporal client may start our workflows, and signal them: none is left with a workflow task that fails for ever."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from pydantic import JsonValue
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.client import (
    Client,
    RPCError,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import RawValue
from temporalio.worker import Worker
from temporalio.workflow import _Definition as Definition

from tests.workflows.session_paths import Provider, group_of, life_of
from tests.workflows.stage import Stage
from toolagent.client import names
from toolagent.contracts.calls import ToolResult
from toolagent_service import step_names
from workers.temporal.host_workers import WORKFLOWS

LIFE = timedelta(seconds=60)
PATIENCE_S = 60
DEFINITIONS = {definition.name: definition for definition in map(Definition.must_from_class, WORKFLOWS) if definition.name}
HANDLERS = sorted(name for name, definition in DEFINITIONS.items() if definition.signals or definition.queries)


def raw(data: bytes, encoding: bytes = b"json/plain", **metadata: bytes) -> RawValue:
    return RawValue(Payload(metadata={"encoding": encoding, **metadata}, data=data))


NONSENSE: dict[str, Sequence[object]] = {
    "nothing": [],
    "null": [None],
    "a number": [7],
    "a text": ["\U0001f643"],
    "a list": [[{}]],
    "an empty object": [{}],
    "wrong types": [{"tool_id": [], "request": 1, "task_id": {}, "id": 5, "calls": [[]] * 10_000, "examples": [[]] * 10_000}],
    "more than one": [{}, 1, "x"],
    "one too many that is none": [{}, raw(b"{")],
    "deeper than it may be": [raw(b"[" * 300 + b"]" * 300)],
    "more than it may hold": [raw(b"[" + b"[]," * 400_000 + b"1]")],
    "broken JSON": [raw(b'{"tool_id": ')],
    "no text": [raw(b"\xff\xfe")],
    "bytes": [raw(b"\x00\xff", b"binary/plain")],
    "another encoding": [raw(b"x", b"binary/encrypted")],
    "a message nobody knows": [raw(b"{}", b"json/protobuf", messageType=b"no.Such")],
}

HOST: JsonValue = "nobody"
TASK: JsonValue = {"type": "build_tool", "tool_name": "word_counter", "description": "Count words."}
AGENT: JsonValue = {"request": {"task_id": "create_00000001", "prompt": "coding"}, "slot": {"host": HOST}}
READY: JsonValue = {
    **life_of(group_of(), "session-00000001").model_dump(mode="json"),
    "view": {"session_id": "session-00000001", "group_id": "servers", "state": "ready", "opened_at": datetime.now(UTC).isoformat()},
}
"""A session that waits to be used: nothing serves its local activities, and one that waits would keep updates back."""

TOLD = {names.RUN_IN_SESSION, names.SAY}
"""Updates that take something, which may be an object without fields."""


def valid(name: str, workflow_id: str) -> JsonValue:
    """Valid inputs; each workflow then waits for a step that no worker serves."""
    inputs: dict[str, JsonValue] = {
        names.RUN_TOOLS: {"calls": [{"tool_id": "echo"}]},
        names.CREATE_TOOL: {"task_id": workflow_id, "spec": TASK},
        names.REPAIR_TOOL: {"task_id": workflow_id, "spec": {"type": "repair_tool", "tool_id": "echo"}},
        names.CODING_AGENT: AGENT,
        names.TOOL_GROUP: READY,
        # One that goes on asks no archive first.
        names.SERVICE_AGENT: {"chat_id": workflow_id.removeprefix("chat/"), "runs": 1},
    }
    return inputs[name]


@pytest_asyncio.fixture
async def queue(temporal: Client) -> AsyncGenerator[str]:
    own = f"starts-{uuid.uuid4().hex[:8]}"
    # Without it the SDK fails a task that takes two seconds, as any does on a machine that is busy with something else.
    async with Worker(temporal, task_queue=own, workflows=WORKFLOWS, debug_mode=True):
        yield own


async def failed_tasks(handle: WorkflowHandle[object, object]) -> list[str]:
    """The failures of our code. The server itself ends a workflow task when signals of over 2 MB wait, and repeats it."""
    of_the_server = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND
    failures = [
        event.workflow_task_failed_event_attributes
        async for event in handle.fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
    ]
    return [failure.failure.message for failure in failures if failure.cause != of_the_server]


async def end_of(client: Client, queue: str, name: str, inputs: Sequence[object]) -> object:
    """Its end, or the failure of its workflow task."""
    handle: WorkflowHandle[object, object] = await client.start_workflow(
        name, args=inputs, id=f"other-{uuid.uuid4().hex}", task_queue=queue, execution_timeout=LIFE
    )
    try:
        return await asyncio.wait_for(handle.result(), PATIENCE_S)
    except WorkflowFailureError as error:
        return error.cause
    except TimeoutError:
        await handle.terminate()
        return f"left with {await failed_tasks(handle)}"


@pytest.mark.parametrize("name", sorted(DEFINITIONS))
async def test_a_workflow_that_is_started_with_nonsense_ends(temporal: Client, queue: str, name: str) -> None:
    # A lane takes no input, so nothing is what it is started with; whatever object has no field of it asks for a synchronisation.
    asks = {step_names.CALL_LANE: {"nothing"}, names.SYNC_KNOWHUB: {"an empty object", "wrong types"}}.get(name, set[str]())
    told = {what: inputs for what, inputs in NONSENSE.items() if what not in asks}
    ends = await asyncio.gather(*(end_of(temporal, queue, name, inputs) for inputs in told.values()))
    assert {what: end for what, end in zip(told, ends, strict=True) if isinstance(end, str)} == {}


async def test_a_lane_that_is_told_nonsense_goes_on(temporal: Client, queue: str) -> None:
    lane: WorkflowHandle[object, None] = await temporal.start_workflow(
        step_names.CALL_LANE, id=f"lane-{uuid.uuid4().hex}", task_queue=queue, execution_timeout=LIFE
    )
    for inputs in NONSENSE.values():
        with pytest.raises(WorkflowUpdateFailedError):
            await asyncio.wait_for(lane.execute_update(step_names.TAKE, args=inputs), PATIENCE_S)
        await lane.signal("no such signal", args=inputs)
    assert await failed_tasks(lane) == []
    await lane.signal(step_names.CLOSE, args=NONSENSE["wrong types"])
    await asyncio.wait_for(lane.result(), PATIENCE_S)


@pytest.mark.parametrize("name", [name for name in HANDLERS if name not in {step_names.CALL_LANE, names.INVOKE_TOOL}])
async def test_a_workflow_that_is_told_nonsense_goes_on(temporal: Client, queue: str, name: str) -> None:
    kind = {names.CREATE_TOOL: "create_", names.REPAIR_TOOL: "repair_", names.SERVICE_AGENT: "chat/"}.get(name, "other_")
    workflow_id = f"{kind}{uuid.uuid4().hex[:8]}"
    handle: WorkflowHandle[object, object] = await temporal.start_workflow(
        name, valid(name, workflow_id), id=workflow_id, task_queue=queue, execution_timeout=LIFE
    )
    definition = DEFINITIONS[name]
    assert {*definition.updates} <= TOLD | {names.SESSION, names.RENEW_SESSION, names.STOP_SESSION}, (
        "An update that takes something is told nonsense here too."
    )
    for what, inputs in NONSENSE.items():
        for update in TOLD.intersection(filter(None, definition.updates)) if what != "an empty object" else ():
            with pytest.raises(WorkflowUpdateFailedError):
                await asyncio.wait_for(handle.execute_update(update, args=inputs), PATIENCE_S)
        for signal in filter(None, [*definition.signals, "no such signal"]):
            await handle.signal(signal, args=inputs)
        for query in filter(None, definition.queries):
            await asked(handle, query, inputs)
    # Answered once all before it was heard.
    with pytest.raises(WorkflowQueryFailedError):
        await asyncio.wait_for(handle.query("no such query"), PATIENCE_S)
    assert await failed_tasks(handle) == []
    assert (await handle.describe()).close_time is None
    await handle.terminate()


async def test_a_call_that_is_told_nonsense_goes_on(temporal: Client) -> None:
    stage, provider = Stage(temporal, f"told-{uuid.uuid4().hex[:8]}"), Provider()
    async with stage.workers(provider.steps):
        launch: JsonValue = {"tool_id": "launch", "params": {"waits": True}}
        handle = await stage.start(names.INVOKE_TOOL, launch, workflow_id=f"call-{stage.queue}")
        await asyncio.wait_for(provider.works.wait(), PATIENCE_S)
        for inputs in NONSENSE.values():
            await handle.signal(step_names.ANSWERED, args=inputs)
        provider.may_work.set()
        assert ToolResult.model_validate(await asyncio.wait_for(handle.result(), PATIENCE_S)).status == "success"
        # Signals that come while a task ends have the server give it out again.
        assert {*await failed_tasks(handle)} <= {"UnhandledCommand"}


async def asked(handle: WorkflowHandle[object, object], query: str, inputs: Sequence[object]) -> None:
    """A refusal of the query is an answer too."""
    try:
        await asyncio.wait_for(handle.query(query, args=inputs), PATIENCE_S)
    except (WorkflowQueryFailedError, RPCError):
        return
