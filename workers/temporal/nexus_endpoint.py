"""The Nexus endpoint by which agents on other namespaces find the service."""

from datetime import timedelta

import structlog
from temporalio.api.nexus.v1 import Endpoint, EndpointSpec, EndpointTarget
from temporalio.api.operatorservice.v1 import CreateNexusEndpointRequest, ListNexusEndpointsRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from toolagent.client import names

_PATIENCE = timedelta(seconds=5)

_log = structlog.stdlib.get_logger(__name__)


async def kept_endpoint(client: Client, endpoint: str, *, is_ours: bool) -> None:
    """Create the endpoint on our own server; on another server, log how to create it. The service also runs without it."""
    wanted = EndpointTarget(worker=EndpointTarget.Worker(namespace=client.namespace, task_queue=names.TASK_QUEUE))
    try:
        there = await _found(client, endpoint)
        if there is None and is_ours:
            await _create(client, EndpointSpec(name=endpoint, target=wanted))
            return
    except RPCError as error:
        _log.warning("nexus_endpoint_unknown", endpoint=endpoint, reason=str(error), effect="agents on other namespaces may not find us")
        return
    if there is None:
        how = f"temporal operator nexus endpoint create --name {endpoint} --target-namespace {client.namespace}"
        _log.info("no_nexus_endpoint", endpoint=endpoint, remedy=f"{how} --target-task-queue {names.TASK_QUEUE}")
    elif there.spec.target != wanted:
        _log.warning("nexus_endpoint_leads_elsewhere", endpoint=endpoint, remedy="set TOOL_AGENT_NEXUS_ENDPOINT to another name")


async def _found(client: Client, endpoint: str) -> Endpoint | None:
    answer = await client.operator_service.list_nexus_endpoints(ListNexusEndpointsRequest(name=endpoint), timeout=_PATIENCE)
    return next(iter(answer.endpoints), None)


async def _create(client: Client, spec: EndpointSpec) -> None:
    try:
        await client.operator_service.create_nexus_endpoint(CreateNexusEndpointRequest(spec=spec), timeout=_PATIENCE)
    except RPCError as error:
        if error.status is not RPCStatusCode.ALREADY_EXISTS:
            raise
