"""The client on a real Temporal server, with scripted steps behind it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from tests.workflows.steps import Steps
from toolagent.client import names
from toolagent.client.failures import AnswerPendingError, CallRefusedError
from toolagent.client.patience import patiently
from toolagent.client.temporal import ToolAgentClient
from toolagent.contracts.batches import CallLook, LookState
from toolagent.contracts.calls import Caller, ErrorType, ToolCall
from toolagent.contracts.tasks import TaskState
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT, reason_of
from toolagent_service import step_names
from toolagent_service.contracts.steps import CallRequest, Finished
from workflows.calls.invoke_tool import InvokeTool

ECHO = ToolCall(tool_id="echo", params={"message": "hi"})


@asynccontextmanager
async def served(temporal: Client, steps: Steps) -> AsyncGenerator[ToolAgentClient]:
    activities = [steps.admit, steps.place, steps.settle, steps.call_tool]
    async with Worker(temporal, task_queue=names.TASK_QUEUE, workflows=[InvokeTool], activities=activities):
        yield ToolAgentClient(temporal, patience_s=1)


async def test_a_call_is_run_and_its_result_can_be_fetched_again(temporal: Client) -> None:
    async with served(temporal, Steps(fast=True)) as client:
        result = await client.run(ECHO)
        assert (result.status, result.result) == ("success", {"message": "hi"})
        assert await client.result(result.call_id) == result
        view = await client.task(result.call_id)
    assert view is not None
    assert (view.status, view.tool_id, view.result) == (TaskState.COMPLETED, "echo", result)


async def test_one_key_is_one_call_before_and_after_its_end(temporal: Client) -> None:
    release = asyncio.Event()

    async def wait(request: CallRequest) -> Finished:
        await release.wait()
        return Finished(output=request.plan.call_id)

    steps = Steps(queue=names.TASK_QUEUE, behaviour=wait)
    call = ECHO.model_copy(update={"idempotency_key": "key-1", "caller": Caller(caller_id="somebody")})
    async with served(temporal, steps) as client:
        first, second = await client.start(call), await client.start(call)
        release.set()
        results = await asyncio.gather(first.result(), second.result())
        third = await client.run(call)
    assert first.call_id == second.call_id
    assert results[0] == results[1] == third
    assert len(steps.calls) == 1


async def test_a_caller_whose_id_is_as_long_as_may_be_is_answered(temporal: Client) -> None:
    async with served(temporal, Steps(fast=True)) as client:
        result = await client.run(ECHO.model_copy(update={"caller": Caller(caller_id="😀" * 200)}))
    assert result.status == "success"


async def test_a_call_that_temporal_never_takes_is_refused_with_what_is_wrong_with_it(temporal: Client) -> None:
    with pytest.raises(CallRefusedError) as refusal:
        await ToolAgentClient(temporal).start(ECHO.model_copy(update={"params": {"message": "x" * 3_000_000}}))
    error = refusal.value.result.error
    assert error is not None
    assert (error.type, error.details) == (ErrorType.VALIDATION_ERROR, {"sent": False})


async def test_another_call_under_the_same_key_is_refused(temporal: Client) -> None:
    call = ECHO.model_copy(update={"idempotency_key": "key-2"})
    async with served(temporal, Steps(fast=True)) as client:
        await client.run(call)
        with pytest.raises(CallRefusedError) as refusal:
            await client.run(call.model_copy(update={"params": {"message": "other"}}))
    assert (refusal.value.result.error_type, reason_of(refusal.value.result)) == (ErrorType.REJECTED, IDEMPOTENCY_CONFLICT)


class Racing(ToolAgentClient):
    """Reports an id as free that another caller takes at once, for this number of looks."""

    raced = 1

    async def look(self, call: ToolCall, call_id: str) -> CallLook:
        self.raced -= 1
        return CallLook(state=LookState.FREE) if self.raced >= 0 else await super().look(call, call_id)


async def test_whoever_is_quicker_with_an_id_that_became_free_has_the_call(temporal: Client) -> None:
    steps = Steps(queue="nobody-serves-the-raced")
    call = ECHO.model_copy(update={"idempotency_key": "raced by a client"})
    async with served(temporal, steps) as client:
        theirs, racing = await client.start(call), Racing(temporal)
        assert (await racing.start(call)).call_id == theirs.call_id
        racing.raced = 1000
        with pytest.raises(CallRefusedError) as refusal:
            await racing.start(call)
        await temporal.get_workflow_handle(theirs.call_id).terminate()
    assert reason_of(refusal.value.result) == IDEMPOTENCY_CONFLICT


async def test_a_task_nobody_started_is_unknown(temporal: Client) -> None:
    client = ToolAgentClient(temporal)
    assert await client.task("call-nobody00") is None
    assert await client.cancel("call-nobody00") is False


async def test_a_waiting_call_is_pending_and_a_terminated_one_failed_with_unknown_outcome(temporal: Client) -> None:
    steps = Steps(queue="nobody-serves-this")
    async with served(temporal, steps) as client:
        call_id = (await client.start(ECHO)).call_id
        handle = temporal.get_workflow_handle(call_id)
        async with asyncio.timeout(60):
            async for event in handle.fetch_history_events(wait_new_event=True):
                if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                    break
        waiting = await client.task(call_id)
        await handle.terminate()
        ended = await client.task(call_id)
    assert waiting is not None
    assert waiting.status is TaskState.PENDING
    assert ended is not None
    assert ended.status is TaskState.FAILED
    assert ended.result is not None
    assert ended.result.error is not None
    assert ended.result.error.details == {"outcome": "unknown"}


@pytest.mark.parametrize(("why", "status"), [(step_names.TOOL_CONNECTION_LOST, TaskState.RUNNING), (names.NO_SLOT, TaskState.PENDING)])
async def test_a_call_that_was_tried_is_running_and_one_that_found_no_slot_still_waits(
    temporal: Client, why: str, status: TaskState
) -> None:
    async def tried(_: CallRequest) -> Finished:
        raise ApplicationError("It will be tried again.", type=why, next_retry_delay=timedelta(seconds=30))

    async with served(temporal, Steps(behaviour=tried, queue=names.TASK_QUEUE)) as client, asyncio.timeout(60):
        call_id = (await client.start(ECHO)).call_id
        handle = temporal.get_workflow_handle(call_id)
        while not any(activity.attempt > 1 for activity in (await handle.describe()).raw_description.pending_activities):
            continue
        waiting = await client.task(call_id)
        await handle.terminate()
    assert waiting is not None
    assert waiting.status is status


async def test_a_silent_temporal_leaves_the_answer_pending_under_the_calls_id(silent_temporal: Client) -> None:
    client = ToolAgentClient(silent_temporal, patience_s=1)
    with pytest.raises(AnswerPendingError) as pending:
        await client.start(ECHO, "call-chosen01")
    assert (pending.value.call_id, pending.value.result.error_type) == ("call-chosen01", ErrorType.UNAVAILABLE)
    with pytest.raises(AnswerPendingError):
        await client.result("call-chosen01")


async def test_waiting_in_health_does_not_use_up_the_patience() -> None:
    moments = iter([0.0, 100.0, 100.1, 100.2, 100.3])
    answers = iter([OSError(), OSError(), "there"])

    async def ask() -> str:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    assert await patiently(ask, lambda error: isinstance(error, OSError), patience_s=1, clock=lambda: next(moments)) == "there"
