"""The Nexus endpoint: created on a server of ours, only looked up on others, never changed."""

from uuid import uuid4

from structlog.testing import capture_logs
from temporalio.api.nexus.v1 import EndpointSpec, EndpointTarget
from temporalio.api.operatorservice.v1 import CreateNexusEndpointRequest, ListNexusEndpointsRequest
from temporalio.client import Client

from toolagent.client import names
from workers.temporal.nexus_endpoint import kept_endpoint


async def targets(client: Client, endpoint: str) -> list[tuple[str, str]]:
    answer = await client.operator_service.list_nexus_endpoints(ListNexusEndpointsRequest(name=endpoint))
    return [(one.spec.target.worker.namespace, one.spec.target.worker.task_queue) for one in answer.endpoints]


def some_name() -> str:
    return f"endpoint-{uuid4().hex[:8]}"


async def test_it_is_made_once_on_a_server_of_ours(temporal: Client) -> None:
    name = some_name()
    with capture_logs() as logs:
        for _ in range(2):
            await kept_endpoint(temporal, name, is_ours=True)
    assert (await targets(temporal, name), logs) == ([(temporal.namespace, names.TASK_QUEUE)], [])


async def test_on_a_server_of_others_the_log_says_how_it_is_made(temporal: Client) -> None:
    name = some_name()
    with capture_logs() as logs:
        await kept_endpoint(temporal, name, is_ours=False)
    assert (await targets(temporal, name), [log["event"] for log in logs]) == ([], ["no_nexus_endpoint"])
    assert f"endpoint create --name {name} --target-namespace {temporal.namespace} --target-task-queue tool-agent" in logs[0]["remedy"]


async def test_one_that_leads_elsewhere_is_left_as_it_is(temporal: Client) -> None:
    name, worker = some_name(), EndpointTarget.Worker(namespace=temporal.namespace, task_queue="elsewhere")
    spec = EndpointSpec(name=name, target=EndpointTarget(worker=worker))
    await temporal.operator_service.create_nexus_endpoint(CreateNexusEndpointRequest(spec=spec))
    with capture_logs() as logs:
        await kept_endpoint(temporal, name, is_ours=True)
    assert (await targets(temporal, name), [log["event"] for log in logs]) == (
        [(temporal.namespace, "elsewhere")],
        ["nexus_endpoint_leads_elsewhere"],
    )
