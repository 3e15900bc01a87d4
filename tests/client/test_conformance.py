"""The conformance suite of clients, for the fake one, the one over Temporal and the one over HTTP."""

from datetime import UTC, datetime

import pytest
from temporalio.client import Client
from temporalio.worker import Worker

from activities.look_at_call import LookAtCall
from tests.client.clients import OverHttp, OverTemporal
from tests.system.service_process import ServiceProcess
from tests.workflows.steps import Steps
from toolagent.client import names
from toolagent.client.failures import AnswerPendingError
from toolagent.client.http import ToolAgentHttp
from toolagent.client.http_calls import HttpCalls
from toolagent.client.plugin import ToolAgentPlugin
from toolagent.client.temporal import ToolAgentClient
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT, failed, reason_of
from toolagent.testing.client_conformance import check_client
from toolagent.testing.fake_client import FakeToolAgentClient, echo
from toolagent_service.contracts.steps import CallRequest, Finished
from workers.settings.environment import environment
from workflows.calls.invoke_tool import InvokeTool
from workflows.calls.run_tools import RunTools

NO_TOOL = ToolError(type=ErrorType.TOOL_NOT_FOUND, message="There is no such tool.")


def known_tools(call: ToolCall, call_id: str) -> ToolResult:
    return echo(call, call_id) if call.tool_id == "echo" else failed(call_id, call.tool_id, NO_TOOL, datetime.now(UTC))


async def known_tools_only(request: CallRequest) -> Finished:
    return Finished(output=request.plan.params) if request.plan.tool_id == "echo" else Finished(error=NO_TOOL)


async def test_the_fake_client_keeps_the_promises() -> None:
    await check_client(OverTemporal(FakeToolAgentClient(script=known_tools)), "echo")


async def test_a_client_that_breaks_a_promise_is_found_out() -> None:
    with pytest.raises(AssertionError, match="a tool that is not there is an answer"):
        await check_client(OverTemporal(FakeToolAgentClient(script=echo)), "echo")


async def test_the_client_over_temporal_keeps_the_promises(temporal: Client) -> None:
    client = ToolAgentClient(temporal, patience_s=5)
    steps = Steps(queue="conformance", behaviour=known_tools_only)
    activities = [steps.admit, steps.place, steps.settle, LookAtCall(client).look_at_call]
    async with (
        Worker(temporal, task_queue=names.TASK_QUEUE, workflows=[InvokeTool, RunTools], activities=activities),
        Worker(temporal, task_queue=steps.queue, activities=[steps.call_tool]),
    ):
        await check_client(OverTemporal(client), "echo")


@pytest.mark.timeout(240)
async def test_the_client_over_http_keeps_the_promises(service: ServiceProcess) -> None:
    with ToolAgentHttp(service.api_url) as http:
        await check_client(OverHttp(http), "echo")


@pytest.mark.timeout(240)
@pytest.mark.skipif(environment().get("TEST_LANES") == "off", reason="the service was asked to have no lanes")
async def test_a_call_of_a_lane_has_one_result_for_who_reaches_temporal_alone(service: ServiceProcess) -> None:
    temporal = await Client.connect(service.temporal_address, plugins=[ToolAgentPlugin()])
    client = ToolAgentClient(temporal, patience_s=5)
    call = ToolCall(tool_id="echo", params={"message": "by a lane"}, idempotency_key="both ways")
    with ToolAgentHttp(service.api_url) as http:
        made = await HttpCalls(http).run(call)
    assert made.metadata["way"] == "lane"
    with pytest.raises(AnswerPendingError, match=f"GET /tasks/{made.call_id}"):
        await client.handle(made.call_id).result()
    assert reason_of(await client.run(call.model_copy(update={"params": {"message": "another"}}))) == IDEMPOTENCY_CONFLICT
    assert await client.run(call) == made
