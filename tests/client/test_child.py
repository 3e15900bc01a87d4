"""Our tools as child workflows of other projects, with a worker and a task queue of their own."""

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.worker import Replayer, Worker

from tests.client.agents import Asking, Delegating
from tests.workflows.steps import Steps
from toolagent.client import child, names
from toolagent.client.child import ALREADY_MADE
from toolagent.client.plugin import ToolAgentPlugin
from toolagent.client.temporal import ToolAgentClient
from toolagent.contracts.calls import ErrorType, ToolCall, ToolResult
from toolagent.core.calls.idempotency import call_id_for_key
from toolagent.core.calls.results import reason_of
from workers.temporal.connection import connect
from workflows.calls.invoke_tool import InvokeTool

QUEUE = "somebody-else"
ECHO = ToolCall(tool_id="echo", params={"number": 1})


@pytest_asyncio.fixture
async def temporal(temporal_address: str) -> Client:
    """Its workers run workflows in Temporal's sandbox, as agents with our plugin do."""
    return await connect(temporal_address, "default", sandbox=True, patience_s=120)


@asynccontextmanager
async def served(temporal: Client, steps: Steps) -> AsyncGenerator[None]:
    activities = [steps.admit, steps.place, steps.settle]
    async with (
        Worker(temporal, task_queue=names.TASK_QUEUE, workflows=[InvokeTool], activities=activities),
        Worker(temporal, task_queue=steps.queue, activities=[steps.call_tool]),
        Worker(temporal, task_queue=QUEUE, workflows=[Asking, Delegating]),
    ):
        yield


def some_id() -> str:
    return f"asking-{uuid.uuid4().hex}"


async def test_a_call_from_a_workflow_is_found_by_its_id_and_replays(temporal: Client) -> None:
    async with served(temporal, Steps(queue="child-a")):
        handle = await temporal.start_workflow(Asking.run, ECHO, id=some_id(), task_queue=QUEUE)
        result = await handle.result()
        view = await ToolAgentClient(temporal).handle(result.call_id).task()
        await Replayer(workflows=[Asking], plugins=[ToolAgentPlugin()]).replay_workflow(await handle.fetch_history())
    assert (result.status, result.result) == ("success", {"number": 1})
    assert view is not None
    assert (view.tool_id, view.result) == ("echo", result)


async def test_the_key_decides_the_id_and_a_second_workflow_is_told_where_the_result_is(temporal: Client) -> None:
    call = ECHO.model_copy(update={"idempotency_key": uuid.uuid4().hex})
    async with served(temporal, Steps(queue="child-b")):
        first, second = [await temporal.execute_workflow(Asking.run, call, id=some_id(), task_queue=QUEUE) for _ in range(2)]
        joined = await ToolAgentClient(temporal).run(call)
    assert first.call_id == second.call_id == call_id_for_key(None, call.idempotency_key or "")
    assert (second.error_type, reason_of(second)) == (ErrorType.REJECTED, ALREADY_MADE)
    assert joined == first


async def test_a_cancelled_workflow_hears_of_it_when_its_call_has_ended(temporal: Client) -> None:
    steps = Steps(queue="nobody-serves-children")
    async with (
        Worker(temporal, task_queue=names.TASK_QUEUE, workflows=[InvokeTool], activities=[steps.admit, steps.place, steps.settle]),
        Worker(temporal, task_queue=QUEUE, workflows=[Asking]),
    ):
        call = ECHO.model_copy(update={"idempotency_key": uuid.uuid4().hex})
        handle = await temporal.start_workflow(Asking.run, call, id=some_id(), task_queue=QUEUE)
        client, call_id = ToolAgentClient(temporal), call_id_for_key(None, call.idempotency_key or "")
        await until_known(client, call_id)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
        assert isinstance(failure.value.cause, CancelledError)
        assert await handle.query(Asking.was_cancelled)
        assert (await client.result(call_id)).error_type is ErrorType.CANCELLED


async def test_a_sub_agent_in_a_workflow_keeps_account(temporal: Client) -> None:
    async with served(temporal, Steps(queue="child-c")):
        told = await temporal.execute_workflow(Delegating.run, [1, 2, 3], id=some_id(), task_queue=QUEUE)
    assert (told["total_calls"], told["success_rate"], told["tool_usage"], told["told"]) == (3, 100.0, {"echo": 3}, 3)


def test_a_worker_with_our_plugin_refuses_a_stub(temporal_address: str) -> None:
    async def build() -> None:
        client = await Client.connect(temporal_address, plugins=[ToolAgentPlugin()])
        Worker(client, task_queue=QUEUE, workflows=[child.InvokeTool])

    with pytest.raises(ValueError, match="InvokeTool"):
        asyncio.run(build())


@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20")
async def test_a_stub_that_was_registered_all_the_same_fails_its_workflow_at_once(temporal_address: str) -> None:
    client = await Client.connect(temporal_address)
    async with Worker(client, task_queue="stub-by-mistake", workflows=[child.InvokeTool]):
        with pytest.raises(WorkflowFailureError) as failure:
            await client.execute_workflow(
                names.INVOKE_TOOL, {"tool_id": "echo"}, id=some_id(), task_queue="stub-by-mistake", result_type=ToolResult
            )
    assert isinstance(failure.value.cause, ApplicationError)
    assert (failure.value.cause.type, failure.value.cause.non_retryable) == ("bodiless_stub", True)


async def until_known(client: ToolAgentClient, call_id: str) -> None:
    async with asyncio.timeout(60):
        while True:
            if await client.task(call_id) is not None:
                return
            await asyncio.sleep(0.05)
