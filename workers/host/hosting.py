"""One host: the tools it runs, and the workers that take calls for them."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog
from temporalio.client import Client

from api.ports import Check, NotReadyError
from engine.calls.call_folders import CallFolders
from engine.disk.leftovers import discard
from engine.registry.catalog_watch import imported_catalog
from engine.runtimes.docker.book import BufferedContainerBook
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import Owner
from engine.runtimes.process.sweep import sweep
from engine.runtimes.running.departures import Departures
from engine.runtimes.running.supervisor import Supervisor
from engine.store.containers import ContainerTable
from toolagent.contracts.records import CatalogFault
from workers.failures import CannotRun
from workers.grace import Grace
from workers.host.containers import engine_check, found_containers
from workers.host.departures import ending_after, ending_departed
from workers.host.lease import HostLease, held_host
from workers.host.leftovers import sweep_set_aside, sweeping_leftovers
from workers.host.making import running_making
from workers.host.projects import projects_of, sweep_projects
from workers.host.runtimes import running_runtimes
from workers.parts import Store, activities_of, builtins_of, catalog_of
from workers.settings.kept import ContentSettings
from workers.settings.whole import Settings
from workers.state.directory import StateDirectory
from workers.state.shared_files import require_shared_files
from workers.temporal.host_workers import WorkerPool, running_workers

__all__ = ["RunningHost", "running_host", "swept_state"]

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RunningHost:
    """A host that takes calls, and what was wrong with its catalog."""

    workers: WorkerPool
    lease: HostLease
    faults: tuple[CatalogFault, ...]
    lacking: Mapping[str, Check]
    """What only some tools need."""

    async def ended(self) -> None:
        """Returns, or raises what went wrong, when it ends although nobody asked it to."""
        ends = [asyncio.create_task(self.workers.ended()), asyncio.create_task(self.lease.lost())]
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in done:
                end.result()
        finally:
            for end in ends:
                end.cancel()


async def swept_state(state: StateDirectory) -> None:
    """End and remove what the last run on this state directory left behind."""
    for swept in await sweep(state.root):
        _log.warning("ended_leftover_process", pid=swept.pid, name=swept.name, worker=swept.worker)
    await asyncio.to_thread(_emptied, state.calls)
    await asyncio.to_thread(sweep_set_aside, state.root)


def _emptied(calls: Path) -> None:
    """The folders of tools stay, as containers that outlived the last run see them."""
    for folder in calls.iterdir() if calls.is_dir() else ():
        for left in folder.iterdir() if folder.is_dir() and not folder.is_symlink() and not folder.name.startswith(".") else (folder,):
            discard(left)


@asynccontextmanager
async def running_host(
    settings: Settings, state: StateDirectory, store: Store, client: Client, guardian: Guardian, owner: Owner, grace: Grace
) -> AsyncGenerator[RunningHost]:
    """Serve the queues of this host until the block ends and what it has in hand is done, or `grace` is over. Raises CannotRun."""
    builtin = builtins_of(settings.calls, settings.limits)
    async with AsyncExitStack() as stack:
        # First: until the id is ours, everything that is kept under it belongs to another.
        lease = await stack.enter_async_context(held_host(store.hosts, settings.host, settings.calls.bucket_limits, state))
        await _require_shared_files(store, settings.content, state)
        await store.routes.reset(state.host)
        projects = projects_of(store, state)
        book = BufferedContainerBook(ContainerTable(store.database))
        running = running_runtimes(settings, state, guardian, owner, builtin, projects, store.audit, book)
        runs = await stack.enter_async_context(running)
        runtimes = runs.runtimes
        supervisor = Supervisor(runtimes, store.routes, state.host, cancel_grace_s=settings.running.stop_grace_s, alert=store.events.say)
        stack.push_async_callback(supervisor.close)
        departures = Departures(supervisor, store.routes, store.registry.list_ids, state.host)
        found = settings.catalog
        catalog = catalog_of(store, found, settings.database, state, builtin)
        watched = imported_catalog(
            ending_after(catalog, departures),
            found.data_dir,
            state.root,
            watch=found.catalog_watch,
            others=(*found.tool_folders, found.script_folder),
        )
        faults = await stack.enter_async_context(watched)
        await sweep_projects(projects, store)
        await stack.enter_async_context(ending_departed(departures))
        builds = await stack.enter_async_context(found_containers(runtimes, supervisor, store))
        making = await stack.enter_async_context(running_making(store, settings, state, client, runs, builds))
        folders = CallFolders(state.calls)
        await stack.enter_async_context(sweeping_leftovers(folders))
        activities = activities_of(store, supervisor, frozenset(runtimes), settings, state, folders)
        workers = await stack.enter_async_context(
            running_workers(client, state.host, settings.calls.bucket_limits, activities, making, grace)
        )
        yield RunningHost(workers, lease, faults, {"docker": engine_check(runtimes)})


async def _require_shared_files(store: Store, settings: ContentSettings, state: StateDirectory) -> None:
    try:
        await require_shared_files(store.hosts, settings, state)
    except NotReadyError as error:
        raise CannotRun(str(error)) from error
