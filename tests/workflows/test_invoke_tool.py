"""One call as a workflow, on a real Temporal server with scripted steps."""

import asyncio
import random
import uuid
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import pytest
from pydantic import JsonValue
from temporalio import activity, workflow
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle
from temporalio.exceptions import ActivityError, ApplicationError, ApplicationErrorCategory
from temporalio.worker import Worker

from tests.workflows.steps import PADDING, Deliberate, Preceded, Steps, Unadmitted, Unhurried, Unrecorded, cancelled, settled
from toolagent.client import names
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.core.calls.idempotency import call_id_for_key
from toolagent.core.calls.results import failed, succeeded
from toolagent_service import step_names, stubs
from toolagent_service.contracts.steps import Admission, AdmitRequest, CallRequest, Finished
from workflows.calls.invoke_tool import InvokeTool
from workflows.invoke import invoke
from workflows.options import LocalOptions, admit

BEAT = timedelta(seconds=0.2)
ECHO: JsonValue = {"tool_id": "echo", "params": {"message": "你好"}}


@workflow.defn
class SomebodyElse:
    """Another project's workflow, which does not know our types."""

    @workflow.run
    async def run(self, queue: str) -> JsonValue:
        return await workflow.execute_child_workflow(names.INVOKE_TOOL, ECHO, task_queue=queue, result_type=dict)


@workflow.defn
class Bound:
    """A step of a session on this host."""

    @workflow.run
    async def run(self, host: str) -> ToolResult:
        return await invoke(ToolCall(tool_id="echo"), workflow.info().workflow_id, prefer=host)


@workflow.defn
class Impatient:
    """Waits for an admission that never answers, with the options of a call except its time."""

    @workflow.run
    async def run(self) -> str:
        given = AdmitRequest(call=ToolCall(tool_id="t"), call_id="call-00000001", workflow_id="w", run_id="r")
        options: LocalOptions = {**admit("t"), "schedule_to_close_timeout": timedelta(seconds=2)}
        try:
            await workflow.execute_local_activity(stubs.admit, given, **options)
        except ActivityError as error:
            return type(error.cause).__name__
        return ""


@activity.defn(name=step_names.ADMIT)
async def never(_request: AdmitRequest) -> Admission:
    raise ApplicationError("The database does not answer.", category=ApplicationErrorCategory.BENIGN)


@asynccontextmanager
async def running(client: Client, steps: Steps, *queues: str) -> AsyncGenerator[str]:
    """Workers for the workflow and for the queues of calls. Yields the workflow's queue."""
    own = f"tests-{uuid.uuid4().hex[:8]}"
    activities = [steps.admit, steps.place, steps.settle, steps.call_tool]
    workers = [
        Worker(client, task_queue=own, workflows=[InvokeTool, SomebodyElse, Bound], activities=activities),
        *(Worker(client, task_queue=queue, activities=[steps.call_tool], max_heartbeat_throttle_interval=BEAT) for queue in queues),
    ]
    async with AsyncExitStack() as stack:
        for worker in workers:
            await stack.enter_async_context(worker)
        yield own


async def start(client: Client, queue: str, call: JsonValue = ECHO, **memo: str) -> WorkflowHandle[object, ToolResult]:
    return await client.start_workflow(
        names.INVOKE_TOOL,
        call,
        id=f"call-{uuid.uuid4().hex}",
        task_queue=queue,
        result_type=ToolResult,
        execution_timeout=timedelta(seconds=60),
        memo=memo,
    )


async def scheduled_activities(handle: WorkflowHandle[object, ToolResult]) -> int:
    history = await handle.fetch_history()
    return sum(event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED for event in history.events)


@pytest.mark.promise("temporal-is-the-queue")
async def test_a_call_is_admitted_made_and_settled(temporal: Client) -> None:
    queue = f"q-{uuid.uuid4().hex[:8]}"
    steps = Steps(queue=queue)
    async with running(temporal, steps, queue) as own:
        handle = await start(temporal, own)
        result = await handle.result()
    assert (result.status, result.result, result.call_id) == ("success", {"message": "你好"}, handle.id)
    assert await scheduled_activities(handle) == 1


async def test_a_call_that_its_attempt_has_settled_is_not_settled_again(temporal: Client) -> None:
    queue = f"q-{uuid.uuid4().hex[:8]}"
    steps = Steps(queue=queue, behaviour=settled)
    async with running(temporal, steps, queue) as own:
        result = await (await start(temporal, own)).result()
    assert (result.status, result.result, steps.settled) == ("success", {"message": "你好"}, [])


_MISFIT = ToolError(type=ErrorType.OUTPUT_VALIDATION_ERROR, message="It does not fit.")
_LOST = ToolError(type=ErrorType.EXECUTION_ERROR, message="Its end is not known.")


@pytest.mark.parametrize(
    ("outcome", "error", "result", "ends"),
    [
        (Finished(output=1), _MISFIT, None, ("error", None)),
        (Finished(error=_LOST), None, 2, ("success", 2)),
        (Finished(error=_LOST), None, None, ("success", None)),
        (Finished(output=1), None, None, ("success", 1)),
    ],
)
async def test_what_was_settled_stands_whatever_the_attempt_says(
    temporal: Client, outcome: Finished, error: ToolError | None, result: JsonValue, ends: tuple[str, JsonValue]
) -> None:
    async def settle(request: CallRequest) -> Finished:
        plan, at = request.plan, activity.info().started_time
        stands = (
            failed(plan.call_id, plan.tool_id, error, at)
            if error is not None
            else succeeded(plan.call_id, plan.tool_id, result, at, execution_time=0.1, metadata={})
        )
        return outcome.model_copy(update={"settled": stands})

    queue = f"q-{uuid.uuid4().hex[:8]}"
    async with running(temporal, Steps(queue=queue, behaviour=settle), queue) as own:
        told = await (await start(temporal, own)).result()
    assert (told.status, told.result) == ends


async def test_a_call_whose_workflow_goes_on_after_it_is_not_settled_by_its_attempt(temporal: Client) -> None:
    queue = f"q-{uuid.uuid4().hex[:8]}"
    steps = Steps(queue=queue)
    call: JsonValue = {"tool_id": "echo", "mode": "async", "callback_url": "https://example.com/told"}
    async with running(temporal, steps, queue) as own:
        handle = await start(temporal, own, call)
        await asyncio.wait_for(steps.called.wait(), 60)
        await handle.terminate()
    assert steps.calls[0].workflow_id is None


@pytest.mark.promise("fast-path")
async def test_a_fast_call_needs_no_queue(temporal: Client) -> None:
    async with running(temporal, Steps(fast=True)) as own:
        handle = await start(temporal, own)
        assert (await handle.result()).status == "success"
    assert await scheduled_activities(handle) == 0


async def test_the_largest_parameters_and_answer_fit_into_the_messages_of_a_fast_call(temporal: Client) -> None:
    text = random.Random(7).randbytes(1_310_720 // 2).hex()  # noqa: S311 - it only must not compress well
    answer, rest = text[:1_048_500], text[1_048_500:-100]
    async with running(temporal, Steps(fast=True)) as own:
        result = await (await start(temporal, own, {"tool_id": "echo", "params": {"message": answer, PADDING: rest}})).result()
    assert result.result == {"message": answer}


@pytest.mark.promise("one-pipeline")
async def test_a_call_can_be_somebody_elses_child_with_plain_json(temporal: Client) -> None:
    async with running(temporal, Steps(fast=True)) as own:
        result = await temporal.execute_workflow(SomebodyElse.run, own, id=f"other-{uuid.uuid4().hex}", task_queue=own)
    assert isinstance(result, dict)
    assert (result["status"], result["result"], result["error"]) == ("success", {"message": "你好"}, None)


@pytest.mark.parametrize(
    "call", [None, [], "echo", {}, {"tool_id": "Not An Id"}, {"tool_id": "echo", "params": 3}, {"tool_id": "echo", "timeout_s": -1}]
)
@pytest.mark.promise("failures-are-data")
async def test_input_that_is_no_call_is_answered_instead_of_failing_for_ever(temporal: Client, call: JsonValue) -> None:
    async with running(temporal, Steps()) as own:
        result = await (await start(temporal, own, call)).result()
    assert (result.status, result.error_type) == ("error", ErrorType.VALIDATION_ERROR)
    assert result.validation_errors


@pytest.mark.parametrize("inputs", [[], [ECHO, ECHO], [1, 2, 3]])
async def test_more_or_fewer_inputs_than_one_are_answered_too(temporal: Client, inputs: list[JsonValue]) -> None:
    async with running(temporal, Steps(fast=True)) as own:
        handle = await temporal.start_workflow(
            names.INVOKE_TOOL, args=inputs, id=f"call-{uuid.uuid4().hex}", task_queue=own, result_type=ToolResult
        )
        result = await asyncio.wait_for(handle.result(), 60)
    assert (result.status, result.error_type) == ("error", ErrorType.VALIDATION_ERROR)


@pytest.mark.promise("a-key-is-one-call")
async def test_a_key_that_is_not_in_the_workflow_id_is_refused(temporal: Client) -> None:
    async with running(temporal, Steps(fast=True)) as own:
        result = await (await start(temporal, own, {"tool_id": "echo", "idempotency_key": "k"})).result()
    assert result.error is not None
    assert (result.error_type, result.error.details) == (ErrorType.VALIDATION_ERROR, {"workflow_id": call_id_for_key(None, "k")})


@pytest.mark.parametrize(("caller_id", "shown"), [("agent-7", "agent-7"), ("😀" * 200, "😀" * 160)])
async def test_the_workflow_says_which_tool_it_calls_for_whom(temporal: Client, caller_id: str, shown: str) -> None:
    async with running(temporal, Steps(fast=True)) as own:
        handle = await start(temporal, own, {"tool_id": "echo", "caller": {"caller_id": caller_id}})
        await handle.result()
    attributes = (await handle.describe()).typed_search_attributes
    assert (attributes[names.TOOL_ID], attributes[names.CALLER], attributes[names.TASK_TYPE]) == ("echo", shown, "call")


@pytest.mark.promise("cancel-closes")
async def test_a_cancelled_call_ends_with_a_result_that_says_what_became_of_the_tool(temporal: Client) -> None:
    queue = f"q-{uuid.uuid4().hex[:8]}"

    async def slow(_request: CallRequest) -> Finished:
        try:
            while True:
                activity.heartbeat()
                await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            return cancelled()

    steps = Steps(queue=queue, behaviour=slow)
    async with running(temporal, steps, queue) as own:
        handle = await start(temporal, own)
        await asyncio.wait_for(steps.called.wait(), 60)
        await handle.cancel()
        result = await handle.result()
    assert result.error is not None
    assert (result.error_type, result.error.details) == (ErrorType.CANCELLED, {"tool": "left_running"})
    assert len(steps.settled) == 1


async def test_a_call_that_is_cancelled_while_it_waits_was_not_sent(temporal: Client) -> None:
    steps = Steps(queue=f"nobody-{uuid.uuid4().hex[:8]}")
    async with running(temporal, steps) as own:
        handle = await start(temporal, own)
        async with asyncio.timeout(60):
            async for event in handle.fetch_history_events(wait_new_event=True):
                if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                    break
        await handle.cancel()
        result = await handle.result()
    assert result.error is not None
    assert (result.error_type, result.error.details) == (ErrorType.CANCELLED, None)
    assert steps.calls == []


@pytest.mark.promise("accepted-means-ended")
@pytest.mark.promise("the-record-decides")
async def test_a_cancel_while_a_fast_call_is_made_does_not_change_how_it_ended(temporal: Client) -> None:
    steps = Unhurried()
    async with running(temporal, steps) as own:
        handle = await start(temporal, own)
        await asyncio.wait_for(steps.called.wait(), 60)
        await handle.cancel()
        steps.released.set()
        result = await handle.result()
    assert (result.status, result.result) == ("success", 42)


async def test_a_call_that_is_cancelled_while_it_is_admitted_is_settled(temporal: Client) -> None:
    queue = f"nobody-{uuid.uuid4().hex[:8]}"
    steps = Deliberate(queue=queue)
    async with running(temporal, steps) as own:
        handle = await start(temporal, own)
        await asyncio.wait_for(steps.called.wait(), 60)
        await handle.cancel()
        steps.released.set()
        result = await handle.result()
    assert result.error_type is ErrorType.CANCELLED
    assert [request.outcome.error for request in steps.settled] == [result.error]


@pytest.mark.promise("cancel-closes")
async def test_who_makes_a_call_that_has_begun_ends_it_when_it_was_cancelled_while_it_was_admitted(temporal: Client) -> None:
    async def ends(request: CallRequest) -> Finished:
        return cancelled() if request.is_cancelled else Finished(output="it went on")

    queue = f"q-{uuid.uuid4().hex[:8]}"
    steps = Deliberate(queue=queue, behaviour=ends, is_begun=True)
    steps.released.set()
    # Nobody serves its queue yet, as after the loss of its first task.
    handle = await start(temporal, queue)
    await handle.cancel()
    async with Worker(temporal, task_queue=queue, workflows=[InvokeTool], activities=[steps.admit, steps.settle, steps.call_tool]):
        result = await handle.result()
    assert result.error == cancelled().error
    assert all(request.is_cancelled for request in steps.asked)


async def test_an_earlier_settlement_stands(temporal: Client) -> None:
    queue = f"q-{uuid.uuid4().hex[:8]}"
    steps = Preceded(queue=queue)
    async with running(temporal, steps, queue) as own:
        result = await (await start(temporal, own)).result()
    assert (result.status, result.result) == ("success", "what was told before")


async def test_attempts_that_keep_failing_end_with_an_unknown_outcome(temporal: Client) -> None:
    queue = f"q-{uuid.uuid4().hex[:8]}"

    async def broken(_request: CallRequest) -> Finished:
        raise ApplicationError("the disk is gone", non_retryable=True)

    steps = Steps(queue=queue, behaviour=broken)
    async with running(temporal, steps, queue) as own:
        result = await (await start(temporal, own)).result()
    assert result.error is not None
    assert (result.error_type, result.error.details) == (ErrorType.EXECUTION_ERROR, {"outcome": "unknown"})
    assert len(steps.settled) == 1


async def test_the_call_model_is_what_the_workflow_takes(temporal: Client) -> None:
    async with running(temporal, Steps(fast=True)) as own:
        handle = await temporal.start_workflow(
            names.INVOKE_TOOL,
            ToolCall(tool_id="echo", params={"a": 1}),
            id=f"call-{uuid.uuid4().hex}",
            task_queue=own,
            result_type=ToolResult,
        )
        assert (await handle.result()).result == {"a": 1}


async def test_a_call_whose_end_cannot_be_recorded_ends_and_says_so(temporal: Client) -> None:
    async with running(temporal, steps := Unrecorded(queue=f"bucket-{uuid.uuid4().hex[:8]}"), steps.queue) as queue:
        result = await (await start(temporal, queue)).result()
    assert result.error is not None
    assert (result.error_type, result.error.details) == (ErrorType.EXECUTION_ERROR, {"reason": "not_recorded", "outcome": "executed"})


@pytest.mark.parametrize(("memo", "known"), [({names.NEW: "yes"}, {"sent": False}), ({}, {})], ids=["a new one", "perhaps begun"])
async def test_a_call_that_cannot_be_admitted_ends_and_says_that_nothing_was_done_where_nobody_else_may_have(
    temporal: Client, memo: dict[str, str], known: dict[str, JsonValue]
) -> None:
    async with running(temporal, Unadmitted()) as queue:
        result = await (await start(temporal, queue, **memo)).result()
    assert result.error is not None
    assert (result.error_type, result.error.details) == (ErrorType.UNAVAILABLE, {"reason": "not_admitted", **known})


@pytest.mark.promise("never-twice")
async def test_a_new_call_that_cannot_be_admitted_may_have_been_sent_where_an_earlier_task_of_its_workflow_was_lost(
    temporal: Client,
) -> None:
    async with running(temporal, Unadmitted()) as queue:
        handle = await temporal.start_workflow(
            names.INVOKE_TOOL,
            ECHO,
            id=f"call-{uuid.uuid4().hex}",
            task_queue=queue,
            result_type=ToolResult,
            memo={names.NEW: "yes"},
            start_signal=step_names.ANSWERED,  # one event more before its task, as such a loss leaves
        )
        result = await handle.result()
    assert result.error is not None
    assert result.error.details == {"reason": "not_admitted"}


async def test_an_admission_that_never_comes_is_waited_for_no_longer_than_is_said(temporal: Client) -> None:
    queue = f"tests-{uuid.uuid4().hex[:8]}"
    async with Worker(temporal, task_queue=queue, workflows=[Impatient], activities=[never]):
        ended = await temporal.execute_workflow(Impatient.run, id=queue, task_queue=queue, execution_timeout=timedelta(seconds=20))
    assert ended == "TimeoutError"
