"""Batches on a real Temporal server: the real workflows, with scripted steps behind them."""

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from temporalio import activity
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from activities.look_at_call import LookAtCall
from tests.workflows.steps import Steps
from toolagent.client import names
from toolagent.client.failures import BrokenOffError, CallRefusedError
from toolagent.client.temporal import ToolAgentClient
from toolagent.contracts.batches import BatchedState, BatchEnd, CallLook, LookRequest, LookState, ToolBatch
from toolagent.contracts.calls import Caller, ErrorType, ToolCall, ToolError
from toolagent.contracts.tasks import TaskState, TaskView
from toolagent.core.calls.batches import SKIPPED
from toolagent.core.calls.idempotency import call_id_for_key
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT, reason_of
from toolagent_service import step_names
from toolagent_service.contracts.steps import CallRequest, Finished
from workflows.calls.invoke_tool import InvokeTool
from workflows.calls.run_tools import LANES, RunTools

BOUND_S = 60


def call(number: int, **more: object) -> ToolCall:
    return ToolCall.model_validate({"tool_id": "echo", "params": {"number": number}, **more})


def batch(*calls: ToolCall, **more: object) -> ToolBatch:
    return ToolBatch.model_validate({"calls": calls, **more})


class Looks:
    """The real looks, counted. The first `raced` report that the key is free although it is taken by then; those that are `faulty` fail."""

    faulty = False

    def __init__(self, client: ToolAgentClient, raced: int) -> None:
        self._look = LookAtCall(client)
        self._raced = raced
        self.count = 0
        self.changed = asyncio.Condition()

    @activity.defn(name=step_names.LOOK_AT_CALL)
    async def look_at_call(self, request: LookRequest) -> CallLook:
        async with self.changed:
            self.count += 1
            self.changed.notify_all()
        if self.faulty:
            raise ApplicationError("It failed for a reason of ours, for the last time.", non_retryable=True)
        return CallLook(state=LookState.FREE) if self.count <= self._raced else await self._look.look_at_call(request)

    async def until(self, count: int) -> None:
        async with asyncio.timeout(BOUND_S), self.changed:
            await self.changed.wait_for(lambda: self.count >= count)


@asynccontextmanager
async def looked_after(temporal: Client, steps: Steps, raced: int = 0) -> AsyncGenerator[tuple[ToolAgentClient, Looks]]:
    client = ToolAgentClient(temporal, patience_s=5)
    looks = Looks(client, raced)
    activities = [steps.admit, steps.place, steps.settle, steps.call_tool, looks.look_at_call]
    async with (
        Worker(temporal, task_queue=names.TASK_QUEUE, workflows=[InvokeTool, RunTools], activities=activities),
        Worker(temporal, task_queue=step_names.LOOKS_QUEUE, activities=[looks.look_at_call]),
        Worker(temporal, task_queue=steps.queue, activities=[steps.call_tool]),
    ):
        yield client, looks


@asynccontextmanager
async def served(temporal: Client, steps: Steps) -> AsyncGenerator[ToolAgentClient]:
    async with looked_after(temporal, steps) as (client, _):
        yield client


class Scripted:
    """Calls with number 0 fail; the others wait for `release`. `most` is the largest number of concurrent calls."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.begun: list[object] = []
        self.changed = asyncio.Condition()
        self.now = self.most = 0

    async def __call__(self, request: CallRequest) -> Finished:
        number = request.plan.params["number"]
        async with self.changed:
            self.begun.append(number)
            self.now += 1
            self.most = max(self.most, self.now)
            self.changed.notify_all()
        if number != 0:
            await self.release.wait()
        self.now -= 1
        if number == 0:
            return Finished(error=ToolError(type=ErrorType.EXECUTION_ERROR, message="zero"))
        return Finished(output=number)

    async def until(self, count: int) -> None:
        async with asyncio.timeout(BOUND_S), self.changed:
            await self.changed.wait_for(lambda: len(self.begun) >= count)


async def task_when(client: ToolAgentClient, batch_id: str, progress: str) -> TaskView:
    async with asyncio.timeout(BOUND_S):
        while True:
            view = await client.batch(batch_id).task()
            if view is not None and view.progress == progress:
                return view
            await asyncio.sleep(0.05)


async def until_known(client: ToolAgentClient, call_id: str) -> None:
    async with asyncio.timeout(BOUND_S):
        while True:
            if await client.task(call_id) is not None:
                return
            await asyncio.sleep(0.05)


async def test_the_results_come_in_order_and_a_failure_stops_nobody(temporal: Client) -> None:
    script = Scripted()
    script.release.set()
    async with served(temporal, Steps(queue="batch-a", behaviour=script)) as client:
        result = await client.run_batch(batch(call(3), call(0), call(2)))
    assert [one.result for one in result.results] == [3, None, 2]
    assert [one.error_type for one in result.results] == [None, ErrorType.EXECUTION_ERROR, None]
    assert (result.total, result.succeeded, result.failed, result.cancelled) == (3, 2, 1, False)


async def test_parallel_calls_are_bounded(temporal: Client) -> None:
    script = Scripted()
    async with served(temporal, Steps(queue="batch-b", behaviour=script)) as client:
        handle = await client.start_batch(batch(*(call(number) for number in range(1, LANES + 5))))
        await script.until(LANES)
        view = await handle.task()
        script.release.set()
        result = await handle.result()
    assert view is not None
    assert sum(one.state is BatchedState.RUNNING for one in view.calls) == LANES
    assert sum(one.state is BatchedState.WAITING for one in view.calls) == 4
    assert script.most == LANES
    assert result.succeeded == LANES + 4


async def test_an_ordered_batch_that_stops_on_an_error_begins_nothing_after_it(temporal: Client) -> None:
    script = Scripted()
    script.release.set()
    async with served(temporal, Steps(queue="batch-c", behaviour=script)) as client:
        result = await client.run_batch(batch(call(1), call(0), call(2), ordered=True, stop_on_error=True))
    assert script.begun == [1, 0]
    assert [one.error_type for one in result.results] == [None, ErrorType.EXECUTION_ERROR, ErrorType.CANCELLED]
    assert reason_of(result.results[2]) == SKIPPED


async def test_the_same_key_twice_is_one_call_with_two_equal_results_and_another_call_under_it_is_refused(temporal: Client) -> None:
    script = Scripted()
    script.release.set()
    asked = batch(call(1, idempotency_key="one"), call(1, idempotency_key="one"), call(2, idempotency_key="one"))
    async with served(temporal, Steps(queue="batch-d", behaviour=script)) as client:
        result = await client.run_batch(asked)
    assert script.begun == [1]
    assert result.results[0] == result.results[1]
    assert (result.results[2].error_type, reason_of(result.results[2])) == (ErrorType.REJECTED, IDEMPOTENCY_CONFLICT)


async def test_a_call_that_somebody_else_makes_under_the_same_key_is_waited_for_and_shared(temporal: Client) -> None:
    script = Scripted()
    mine = call(7, idempotency_key="shared", caller=Caller(caller_id="us"))
    async with served(temporal, Steps(queue="batch-e", behaviour=script)) as client:
        alone = await client.start(mine)
        await script.until(1)
        other = mine.model_copy(update={"params": {"number": 8}})
        handle = await client.start_batch(batch(mine, other, ordered=False))
        conflicting = await client.run_batch(batch(other))
        script.release.set()
        result = await handle.result()
    assert alone.call_id == call_id_for_key("us", "shared")
    assert script.begun == [7]
    assert result.results[0].result == 7
    assert [reason_of(one) for one in (result.results[1], conflicting.results[0])] == [IDEMPOTENCY_CONFLICT] * 2


async def test_waiting_for_somebody_elses_call_leaves_no_trace_of_the_looks_in_the_history(temporal: Client) -> None:
    script = Scripted()
    mine = call(7, idempotency_key="waited for")
    async with looked_after(temporal, Steps(queue="batch-j", behaviour=script)) as (client, looks):
        await client.start(mine)
        await script.until(1)
        handle = await client.start_batch(batch(mine))
        await looks.until(4)
        script.release.set()
        assert (await handle.result()).results[0].result == 7
        history = await temporal.get_workflow_handle(handle.batch_id).fetch_history()
    kinds = Counter(event.event_type for event in history.events)
    assert kinds[EventType.EVENT_TYPE_MARKER_RECORDED] == kinds[EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED] == 1
    assert EventType.EVENT_TYPE_TIMER_STARTED not in kinds


async def test_a_cancelled_batch_waits_no_longer_for_somebody_elses_call_and_leaves_it_alone(temporal: Client) -> None:
    script = Scripted()
    mine = call(7, idempotency_key="left alone")
    async with looked_after(temporal, Steps(queue="batch-k", behaviour=script)) as (client, looks):
        theirs = await client.start(mine)
        await script.until(1)
        handle = await client.start_batch(batch(mine))
        await looks.until(3)
        await handle.cancel()
        end = await client.batch_end(handle.batch_id)
        script.release.set()
        assert (await theirs.result()).result == 7
    assert [one.state for one in end.calls] == [BatchedState.CANCELLED]


async def test_when_somebody_is_quicker_with_a_key_that_became_free_the_batch_has_their_result(temporal: Client) -> None:
    script = Scripted()
    mine = call(7, idempotency_key="raced")
    async with looked_after(temporal, Steps(queue="batch-l", behaviour=script), raced=1) as (client, looks):
        await client.start(mine)
        await script.until(1)
        handle = await client.start_batch(batch(mine, call(8)))
        await looks.until(2)
        script.release.set()
        result = await handle.result()
    assert [one.result for one in result.results] == [7, 8]
    assert script.begun.count(7) == 1


async def test_when_others_are_quicker_again_and_again_that_one_call_is_refused_and_the_others_keep_their_results(temporal: Client) -> None:
    script = Scripted()
    mine = call(7, idempotency_key="raced again")
    async with looked_after(temporal, Steps(queue="batch-m", behaviour=script), raced=1000) as (client, _):
        await client.start(mine)
        await script.until(1)
        result = await client.run_batch(batch(mine, call(0)))
        script.release.set()
    assert [one.error_type for one in result.results] == [ErrorType.REJECTED, ErrorType.EXECUTION_ERROR]
    assert reason_of(result.results[0]) == IDEMPOTENCY_CONFLICT


async def test_a_call_that_cannot_be_looked_at_is_the_fault_of_no_other_call(temporal: Client) -> None:
    script = Scripted()
    script.release.set()
    shared = call(1, idempotency_key=f"key-{uuid.uuid4().hex}")
    async with looked_after(temporal, Steps(queue="batch-unseen", behaviour=script)) as (client, looks):
        await client.run(shared)
        looks.faulty = True
        end = await client.batch_end((await client.start_batch(batch(shared, call(2)))).batch_id)
    assert [(one.state, one.error_type) for one in end.calls] == [
        (BatchedState.ERROR, ErrorType.EXECUTION_ERROR),
        (BatchedState.SUCCESS, None),
    ]


async def test_one_key_is_one_batch_and_another_batch_under_it_is_refused(temporal: Client) -> None:
    script = Scripted()
    script.release.set()
    asked = batch(call(1), idempotency_key="batch-key")
    async with served(temporal, Steps(queue="batch-f", behaviour=script)) as client:
        first, second = await client.run_batch(asked), await client.run_batch(asked)
        with pytest.raises(CallRefusedError) as refusal:
            await client.run_batch(asked.model_copy(update={"ordered": True}))
    assert first == second
    assert script.begun == [1]
    assert reason_of(refusal.value.result) == IDEMPOTENCY_CONFLICT


async def test_a_cancelled_batch_ends_its_running_calls_and_skips_the_others(temporal: Client) -> None:
    script = Scripted()
    # Nobody serves the queue, so the calls wait and can be cancelled at once.
    client = ToolAgentClient(temporal, patience_s=5)
    steps = Steps(queue="nobody-serves-batches", behaviour=script)
    activities = [steps.admit, steps.place, steps.settle, LookAtCall(client).look_at_call]
    async with Worker(temporal, task_queue=names.TASK_QUEUE, workflows=[InvokeTool, RunTools], activities=activities):
        handle = await client.start_batch(batch(call(1), call(2), ordered=True))
        first = (await task_when(client, handle.batch_id, "0 of 2")).calls[0]
        await until_known(client, first.call_id)
        assert await handle.cancel()
        result = await handle.result()
        view = await handle.task()
        child = await temporal.get_workflow_handle(first.call_id).describe()
    assert result.cancelled
    assert [one.error_type for one in result.results] == [ErrorType.CANCELLED] * 2
    assert [reason_of(one) for one in result.results] == [None, SKIPPED]
    assert child.status is WorkflowExecutionStatus.COMPLETED, "it ended in order, and was settled"
    assert view is not None
    assert (view.status, view.progress) == (TaskState.CANCELLED, "2 of 2")


async def test_a_terminated_batch_says_so_and_its_calls_are_asked_to_end(temporal: Client) -> None:
    script = Scripted()
    async with served(temporal, Steps(queue="batch-g", behaviour=script)) as client:
        handle = await client.start_batch(batch(call(1)))
        await script.until(1)
        await temporal.get_workflow_handle(handle.batch_id).terminate()
        with pytest.raises(BrokenOffError):
            await handle.result()
        end = await client.batch_end(handle.batch_id)
        script.release.set()
        view = await handle.task()
        assert view is not None
        ended = await client.result(view.calls[0].call_id)
    assert view.status is TaskState.FAILED
    assert end.error is not None
    assert [one.state for one in end.calls] == [BatchedState.RUNNING], "as the batch last knew it"
    assert ended.status in {"success", "error"}


async def test_input_that_is_no_batch_is_answered_and_does_not_hang(temporal: Client) -> None:
    async with served(temporal, Steps(queue="batch-h")):
        end = await temporal.execute_workflow(
            names.RUN_TOOLS, {"calls": []}, id="batch-malformed1", task_queue=names.TASK_QUEUE, result_type=BatchEnd
        )
    assert end.error is not None
    assert end.error.type is ErrorType.VALIDATION_ERROR


@pytest.mark.parametrize("number_of", [20, pytest.param(100, marks=pytest.mark.long)])
async def test_many_results_of_a_quarter_of_a_megabyte_fit(temporal: Client, number_of: int) -> None:
    """Together more than one message to Temporal may have, which is 4 MiB, and one value, 2 MiB."""
    text = "x" * 250_000

    async def large(request: CallRequest) -> Finished:
        return Finished(output=text)

    async with served(temporal, Steps(queue="batch-i", behaviour=large)) as client:
        async with asyncio.timeout(100):
            result = await client.run_batch(batch(*(call(number) for number in range(number_of))))
    assert result.succeeded == number_of
    assert all(one.result == text for one in result.results)
