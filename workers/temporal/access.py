"""Access to Temporal: the embedded server, or a named one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import structlog
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, DescribeWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from engine.disk.room import require_writing
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import Owner
from toolagent.client import names
from workers.failures import CannotRun
from workers.settings.temporal import TemporalSettings
from workers.state.directory import StateDirectory
from workers.temporal.connection import connect, register_search_attributes, set_retention
from workers.temporal.dev_server import embedded_temporal, last_words, read_config

_log = structlog.stdlib.get_logger(__name__)

_CONNECT_S = 30.0
_FIND_S = 10.0
_ANSWER = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class TemporalAccess:
    """A connection ready for use, and the address of the server."""

    client: Client
    address: str
    ui_url: str | None = None
    folder: Path | None = None
    """The folder of the embedded server."""


@asynccontextmanager
async def some_temporal(
    settings: TemporalSettings, state: StateDirectory, guardian: Guardian, owner: Owner
) -> AsyncGenerator[TemporalAccess]:
    """The named server; if none is named, the embedded one, until the block ends. Raises CannotRun."""
    if settings.temporal_address is not None:
        yield await named_temporal(settings, settings.temporal_address)
        return
    config = read_config(settings.temporal_config)
    namespace = settings.temporal_namespace or config.namespace
    async with embedded_temporal(settings, config, state.temporal, guardian, owner) as server:
        try:
            client = await connect(server.address, namespace, sandbox=settings.workflow_sandbox, patience_s=_CONNECT_S)
        except CannotRun as problem:
            raise CannotRun(f"The embedded Temporal does not answer. {await asyncio.to_thread(last_words, state.temporal)}") from problem
        await _register(client)
        await set_retention(client, config.retention_hours)
        yield TemporalAccess(client, server.address, server.ui_url, state.temporal)


async def named_temporal(settings: TemporalSettings, address: str) -> TemporalAccess:
    """A server that others run. Raises CannotRun if it does not answer."""
    namespace = settings.temporal_namespace or read_config(settings.temporal_config).namespace
    client = await connect(address, namespace, sandbox=settings.workflow_sandbox, patience_s=_FIND_S)
    await _register(client)
    return TemporalAccess(client, address)


async def _register(client: Client) -> None:
    if reason := await register_search_attributes(client):
        _log.warning("search_attribute_not_registered", name=names.OUTCOME.name, reason=reason, effect="outcomes are not shown")


async def check_temporal(client: Client, folder: Path | None = None) -> None:
    """Raises RPCError if Temporal does not answer, StoreUnwritableError if the embedded server cannot write to its `folder`.

    Asks for a workflow, because a server that failed to write finds none until it can write again.
    """
    if folder is not None:
        await require_writing({"Temporal's folder": folder})
    service, nobody = client.workflow_service, WorkflowExecution(workflow_id="nobody")
    await service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace), timeout=_ANSWER)
    try:
        await service.describe_workflow_execution(
            DescribeWorkflowExecutionRequest(namespace=client.namespace, execution=nobody), timeout=_ANSWER
        )
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
