"""Everything in one process, started in order and stopped in the reverse: what `up`, `demo` and the tests run."""

import asyncio
import shutil
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import structlog
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

from api.app import create_app
from engine.runtimes.guardian import Guardian
from engine.runtimes.ownership import Owner
from engine.runtimes.supervisor import Supervisor
from engine.runtimes.sweep import sweep
from engine.store.database import Database, UnusableDatabaseError, migrate
from toolagent.client.temporal import ToolAgentClient
from toolagent.contracts.records import CatalogFault
from workers.dev_server import embedded_temporal, last_words, read_config
from workers.failures import CannotRun
from workers.front_door import bound_socket, serving
from workers.parts import Store, activities_of, builtins_of, doors_of, import_catalog
from workers.ports import url_of
from workers.runtimes import running_runtimes
from workers.settings import Settings
from workers.state import StateDirectory, owned_state
from workers.temporal_connection import connect, register_search_attributes, set_retention
from workers.temporal_workers import WorkerPool, running_workers

__all__ = ["Service", "running_service"]

_CONNECT_S = 30.0
_FIND_S = 10.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Service:
    """Where the running service is reached, and the workers it lives by."""

    api_url: str
    temporal_address: str
    temporal_ui_url: str | None
    state: StateDirectory
    workers: WorkerPool
    faults: tuple[CatalogFault, ...]


@asynccontextmanager
async def running_service(settings: Settings) -> AsyncGenerator[Service]:
    """Run the service until the block ends. Raises CannotRun with what is wrong and what to do about it."""
    async with AsyncExitStack() as stack:
        builtin = builtins_of(settings)
        state = stack.enter_context(owned_state(settings.state_dir))
        listener = bound_socket(settings)
        stack.callback(listener.close)
        store = await _opened_store(stack, settings, state)
        owner = Owner.of_this_process(state.root)
        guardian = stack.enter_context(Guardian(owner))
        address, ui_url, client = await _temporal(stack, settings, state, guardian, owner)
        runtimes = await stack.enter_async_context(running_runtimes(settings, state, guardian, owner, builtin))
        supervisor = Supervisor(runtimes, store.routes, state.host, cancel_grace_s=settings.stop_grace_s)
        stack.push_async_callback(supervisor.close)
        faults = await import_catalog(store, settings, builtin)
        for fault in faults:
            _log.warning("catalog_fault", file=fault.file, field=fault.field, reason=fault.reason)
        activities = activities_of(store, supervisor, frozenset(runtimes), settings, state)
        workers = await stack.enter_async_context(
            running_workers(client, state.host, settings.bucket_limits, activities, settings.shutdown_grace_s)
        )
        calls = ToolAgentClient(client, patience_s=settings.temporal_patience_s)
        checks = {"temporal": lambda: _check_temporal(client), "database": store.database.check, "worker": workers.check}
        await stack.enter_async_context(
            serving(create_app(doors_of(store, calls, settings, state, checks)), listener, settings.shutdown_grace_s)
        )
        yield Service(url_of(listener), address, ui_url, state, workers, faults)


async def _opened_store(stack: AsyncExitStack, settings: Settings, state: StateDirectory) -> Store:
    """The migrated database, without what the last run of this host left behind."""
    for swept in await sweep(state.root):
        _log.warning("ended_leftover_process", pid=swept.pid, name=swept.name, worker=swept.worker)
    await asyncio.to_thread(shutil.rmtree, state.calls, ignore_errors=True)
    await asyncio.to_thread(settings.files_folder.mkdir, parents=True, exist_ok=True)
    url = settings.database_url or state.database_url
    try:
        await asyncio.to_thread(migrate, url, state.migration_lock)
        database = Database(url)
    except UnusableDatabaseError as error:
        raise CannotRun(f"The database of TOOL_AGENT_DATABASE_URL cannot be used: {error}.") from error
    stack.push_async_callback(database.close)
    store = Store(database, settings, state)
    await store.routes.reset(state.host)
    return store


async def _temporal(
    stack: AsyncExitStack, settings: Settings, state: StateDirectory, guardian: Guardian, owner: Owner
) -> tuple[str, str | None, Client]:
    """The embedded server, or the one that was named."""
    config = read_config(settings.temporal_config)
    namespace = settings.temporal_namespace or config.namespace
    if settings.temporal_address is not None:
        client = await connect(settings.temporal_address, namespace, sandbox=settings.workflow_sandbox, patience_s=_FIND_S)
        await register_search_attributes(client)
        return settings.temporal_address, None, client
    server = await stack.enter_async_context(embedded_temporal(settings, config, state.temporal, guardian, owner))
    try:
        client = await connect(server.address, namespace, sandbox=settings.workflow_sandbox, patience_s=_CONNECT_S)
    except CannotRun as problem:
        raise CannotRun(f"The embedded Temporal does not answer. {await asyncio.to_thread(last_words, state.temporal)}") from problem
    await register_search_attributes(client)
    await set_retention(client, config.retention_hours)
    return server.address, server.ui_url, client


async def _check_temporal(client: Client) -> None:
    await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))
