"""Connects to Temporal, and registers search attributes."""

from functools import cache

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, UpdateNamespaceRequest
from temporalio.client import Client
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner
from tenacity import AsyncRetrying, RetryError, retry_if_exception_type, stop_after_delay, wait_fixed

from toolagent.client import names
from toolagent_service.plugin import service_plugin
from workers.failures import CannotRun


async def connect(address: str, namespace: str, *, sandbox: bool, patience_s: float) -> Client:
    """Raises CannotRun if no Temporal answers for the namespace within `patience_s`."""
    plugin = service_plugin(None if sandbox else UnsandboxedWorkflowRunner())
    try:
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type((RuntimeError, RPCError)), stop=stop_after_delay(patience_s), wait=wait_fixed(0.1)
        ):
            with attempt:
                client = await Client.connect(address, namespace=namespace, plugins=[plugin], runtime=_runtime())
                await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=namespace))
                return client
    except RetryError as error:
        cause = error.last_attempt.exception()
        raise CannotRun(
            f"No Temporal server answers at {address} for namespace {namespace!r} ({cause}). "
            "Start it, correct TOOL_AGENT_TEMPORAL_ADDRESS, or unset it to use the embedded one."
        ) from error
    raise AssertionError("tenacity ended without an outcome")


@cache
def _runtime() -> Runtime:
    """Logs errors only. It has threads, so a process must not connect before it forks."""
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=TelemetryFilter(core_level="ERROR", other_level="ERROR"))))


async def register_search_attributes(client: Client) -> str:
    """Register missing search attributes: the server refuses to start workflows with unknown ones. Raises CannotRun.

    Returns why outcomes are not shown, if only their attribute is missing, without which the service can run.
    """
    try:
        await _add_missing(client)
    except RPCError as error:
        if await _lacks_only_outcome(client):
            return str(error)
        wanted = ", ".join(f"{key.name} (Keyword)" for key in names.SEARCH_ATTRIBUTES)
        raise CannotRun(f"The search attributes {wanted} could not be registered ({error}). Register them by hand.") from error
    return ""


async def shows_outcomes(client: Client) -> bool:
    """Whether workflows may set the search attribute of their outcome."""
    return names.OUTCOME.name not in await _missing(client)


async def _lacks_only_outcome(client: Client) -> bool:
    try:
        return await _missing(client) == {names.OUTCOME.name}
    except RPCError:
        return False


async def _missing(client: Client) -> set[str]:
    request = ListSearchAttributesRequest(namespace=client.namespace)
    present = await client.operator_service.list_search_attributes(request, retry=True)
    return {key.name for key in names.SEARCH_ATTRIBUTES if key.name not in present.custom_attributes}


async def _add_missing(client: Client) -> None:
    if missing := await _missing(client):
        request = AddSearchAttributesRequest(namespace=client.namespace)
        for key in names.SEARCH_ATTRIBUTES:
            if key.name in missing:
                request.search_attributes[key.name] = IndexedValueType.ValueType(key.indexed_value_type.value)
        await client.operator_service.add_search_attributes(request, retry=True)


async def set_retention(client: Client, hours: int) -> None:
    """Set how long the embedded server keeps ended workflows. Its file grows by about 20 KB for each."""
    config = NamespaceConfig(workflow_execution_retention_ttl=Duration(seconds=hours * 3600))
    await client.workflow_service.update_namespace(UpdateNamespaceRequest(namespace=client.namespace, config=config), retry=True)
