"""One host: the tools that it runs, and the workers that make calls of them."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from temporalio.client import Client

from activities.maintain import Maintain
from api.ports import Check, NotReadyError
from engine.beside import beside
from engine.calling.intake import Intake
from engine.calling.lane_call import LaneMaking
from engine.calling.queued_call import QueuedCall
from engine.calls.call_folders import CallFolders
from engine.registry.catalog_watch import imported_catalog
from engine.registry.stored_archives import StoredArchives
from engine.runtimes.docker.book import BufferedContainerBook
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import Owner
from engine.runtimes.projects import Projects
from engine.runtimes.running.departures import Departures
from engine.runtimes.running.supervisor import Supervisor
from engine.store.catalog_state import CatalogState
from engine.store.containers import ContainerTable
from engine.store.hosts import HostClaim
from engine.store.mcp_servers import McpServerRows
from engine.upkeep.hosts.draining import OwnDrain, draining
from engine.upkeep.hosts.lease import HostLease, NotTheHostError, held_host
from engine.upkeep.removal.containers import found_containers
from engine.upkeep.removal.departures import ending_after, ending_departed
from engine.upkeep.removal.leftovers import sweeping_leftovers
from engine.upkeep.removal.projects import sweep_projects
from engine.upkeep.tools.maintenance import ServiceMaintenance, begun_maintenance
from toolagent.contracts.records import CatalogFault
from workers.failures import cannot_run_on
from workers.grace import Grace
from workers.host.containers import engine_check
from workers.host.knowhub import some_knowhub, synchronised
from workers.host.making import repairs_of, running_making, running_sampling
from workers.host.mcp_servers import logins_of, mcp_servers_of, noticing, strays_of, watch
from workers.host.runtimes import running_runtimes
from workers.nexus import NexusOperations
from workers.parts import activities_of, builtins_of, catalog_of, maintenance_of, tables_of
from workers.state.shared_files import require_shared_files
from workers.storage import Store
from workers.temporal.host_workers import WorkerPool, running_workers
from workers.temporal.maintain_schedule import MaintainSchedule, kept_schedule
from workers.upstreams import McpSide, running_upstreams


@dataclass(frozen=True, slots=True)
class RunningHost:
    """A host that takes calls, and the faults of its catalog."""

    workers: WorkerPool
    lease: HostLease
    faults: tuple[CatalogFault, ...]
    lacking: Mapping[str, Check]
    """Checks of parts that only some tools need."""
    lane: LaneMaking
    queued: QueuedCall
    servers: McpSide

    async def ended(self) -> None:
        """Returns, or raises the error, if the host ends without being asked to."""
        with cannot_run_on(NotTheHostError):
            await first_of(self.workers.ended, self.lease.lost)


async def first_of(*ends: Callable[[], Awaitable[None]]) -> None:
    """Returns, or raises, as the first of these that ends."""
    tasks = [asyncio.ensure_future(end()) for end in ends]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()


@asynccontextmanager
async def running_host(store: Store, client: Client, guardian: Guardian, owner: Owner, grace: Grace) -> AsyncGenerator[RunningHost]:
    """Serve the queues of this host until the block ends, and its calls have ended or `grace` is over. Raises CannotRun."""
    settings, state = store.settings, store.state
    builtin = builtins_of(settings)
    intake = Intake(settings.calls.bucket_limits)
    async with AsyncExitStack() as stack:
        # First, because everything kept under the id belongs to the host that holds its lease.
        claim = HostClaim(state.host, secrets.token_hex(8), state.origin, settings.calls.bucket_limits)
        with cannot_run_on(NotTheHostError):
            held = held_host(store.hosts, claim, settings.host.host_heartbeat_s, settings.host.host_lease_s, intake)
            lease = await stack.enter_async_context(held)
        with cannot_run_on(NotReadyError):
            await require_shared_files(store.hosts, settings.content, state)
        await store.routes.reset(state.host)
        projects = Projects(state.projects, StoredArchives(store.files, store.archives))
        book = BufferedContainerBook(ContainerTable(store.database))
        logins = logins_of(store)
        stack.push_async_callback(logins.close)
        runs = await stack.enter_async_context(running_runtimes(store, guardian, owner, builtin, projects, book, logins))
        runtimes = runs.runtimes
        supervisor = Supervisor(runtimes, store.routes, state.host, cancel_grace_s=settings.running.stop_grace_s, alert=store.events.warn)
        stack.push_async_callback(supervisor.close)
        departures = Departures(
            supervisor, store.routes, store.registry.list_ids, state.host, McpServerRows(store.database).names, (state.tools, state.calls)
        )
        servers = mcp_servers_of(store, runs, logins)
        found = settings.catalog
        watched = imported_catalog(
            noticing(ending_after(catalog_of(store, builtin), departures), servers.look_again),
            found.data_dir,
            state.root,
            watch=found.catalog_watch,
            others=(*found.tool_folders, found.script_folder),
        )
        faults = await stack.enter_async_context(watched)
        await sweep_projects(projects, store.database)
        await stack.enter_async_context(ending_departed(departures))
        await stack.enter_async_context(beside("look at MCP servers", watch(servers)))
        upstreams = await stack.enter_async_context(running_upstreams(store.database, supervisor, runtimes["mcp"]))
        builds = await stack.enter_async_context(found_containers(runtimes, supervisor, store.registry))
        making = await stack.enter_async_context(running_making(store, client, runs, builds, intake))
        await stack.enter_async_context(draining(OwnDrain(state.host, intake, supervisor, store.routes, store.residents)))
        folders = CallFolders(state.calls)
        await stack.enter_async_context(sweeping_leftovers(folders))
        knowhub = await stack.enter_async_context(some_knowhub(settings.tables, state))
        maintenance = maintenance_of(store, supervisor, builds, intake)
        rounds = (
            repairs_of(store, client).run,
            tables_of(store).refresh_due,
            servers.refresh_due,
            strays_of(store).round,
            store.call_messages.forget_ended,
        )
        maintain = Maintain(maintenance, ServiceMaintenance(store.hosts, rounds))
        sampling = await stack.enter_async_context(running_sampling(store))
        activities = activities_of(store, supervisor, frozenset(runtimes), folders, intake, maintain, knowhub, sampling, grace)
        nexus = NexusOperations(client, store.registry, store.matching, store.tasks)
        workers = await stack.enter_async_context(
            running_workers(client, state.host, settings.calls.bucket_limits, activities, making, nexus, grace, intake)
        )
        await stack.enter_async_context(begun_maintenance(maintenance))
        await stack.enter_async_context(kept_schedule(MaintainSchedule(client, settings.keeping.health_check_interval_s)))
        if knowhub is not None:
            await stack.enter_async_context(synchronised(client, CatalogState(store.database), settings.tables.knowhub_interval_s))
        yield RunningHost(
            workers, lease, faults, {"docker": engine_check(runtimes)}, activities.lane, activities.queued, McpSide(servers, upstreams)
        )
