"""The kinds of processes: everything in one, a host alone, a front door alone, an IM contact alone.

Each stops in reverse order.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socket import socket

from api.app import create_app
from api.client.guarded_calls import GuardedCalls
from api.client.prompt_calls import PromptCalls
from api.client.recording import Recording
from api.ports import Check, Dependencies, NotReadyError
from api.views.readiness import Remembered
from engine.disk.room import require_room, require_writing
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import Owner
from engine.store.database import Database
from engine.upkeep.hosts.doors import seen_doors
from engine.upkeep.hosts.loop_watch import watched_loop
from engine.upkeep.removal.leftovers import swept_state
from toolagent.client.knowhub import KnowHubSyncs
from toolagent.contracts.records import CatalogFault
from workers.door_tools import making_of_door
from workers.failures import CannotRun
from workers.front.door import answering_mcp, bound_socket, never_ended, serving
from workers.grace import Grace
from workers.host.hosting import RunningHost, first_of, running_host
from workers.im import running_im
from workers.lanes import running_door, succeeded_doors
from workers.parts import builtins_of, doors_of, poster_of
from workers.ports import url_of
from workers.settings.kept import DatabaseSettings
from workers.settings.temporal import TemporalSettings
from workers.settings.whole import Settings
from workers.state.directory import StateDirectory, open_state, owned_state
from workers.state.shared_files import require_shared_files
from workers.storage import Store, opened_store
from workers.temporal.access import TemporalAccess, check_temporal, named_temporal, some_temporal
from workers.temporal.nexus_endpoint import kept_endpoint


@dataclass(frozen=True, slots=True)
class Running:
    """A running process. `ended` returns, or raises, if a part of it ends without being asked to."""

    temporal: TemporalAccess
    state: StateDirectory
    ended: Callable[[], Awaitable[None]]
    api_url: str = ""
    """Empty without a front door."""
    im: str = ""
    """The IM server's address; empty if none is set."""
    faults: tuple[CatalogFault, ...] = ()


@asynccontextmanager
async def running_service(settings: Settings) -> AsyncGenerator[Running]:
    """Everything in one process, until the block ends. Raises CannotRun."""
    async with AsyncExitStack() as stack:
        watch = await stack.enter_async_context(watched_loop())
        builtins_of(settings)  # raises for a wrong setting before anything is started
        state = stack.enter_context(owned_state(settings.state.state_dir, settings.host.host_id))
        poster_of(settings.calls, state)
        listener = bound_socket(settings.front)
        stack.callback(listener.close)
        await swept_state(state.root, state.calls)
        store = await stack.enter_async_context(opened_store(settings, state))
        grace = Grace(settings.calls.shutdown_grace_s)
        temporal, host = await _host(stack, store, grace)
        parts = _parts(temporal, store, host.workers.check)
        checks = {**_checks(parts, temporal, store), **_remembered(host.lacking)}
        recording = await _watched(stack, parts, temporal, store)
        calls = PromptCalls(temporal.client, store.settled, recording, patience_s=settings.temporal.temporal_patience_s)
        stack.push_async_callback(calls.close)
        door = await stack.enter_async_context(running_door(store, temporal.client, calls, host.lane))
        im = await stack.enter_async_context(running_im(settings, state, temporal.client, store.database))
        syncs, contact = KnowHubSyncs(temporal.client), im.client if im else None
        dependencies = doors_of(store, door.client, syncs, checks, watch, door.figures, host.servers, contact)
        await _serve(stack, dependencies, store, listener, grace)
        ended = partial(first_of, host.ended, im.ended) if im else host.ended
        yield Running(temporal, state, ended, url_of(listener), im.address if im else "", host.faults)


@asynccontextmanager
async def running_worker(settings: Settings) -> AsyncGenerator[Running]:
    """A host alone: workflows, activities and tools, until the block ends. Raises CannotRun."""
    named_address(settings.temporal)
    named_database(settings.database)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(watched_loop())
        builtins_of(settings)
        state = stack.enter_context(owned_state(settings.state.state_dir, settings.host.host_id))
        await swept_state(state.root, state.calls)
        store = await stack.enter_async_context(opened_store(settings, state))
        await stack.enter_async_context(seen_doors(store.doors, settings.host.host_heartbeat_s))
        temporal, host = await _host(stack, store, Grace(settings.calls.shutdown_grace_s))
        await stack.enter_async_context(succeeded_doors(store, temporal.client, host.lane))
        yield Running(temporal, state, host.ended, faults=host.faults)


@asynccontextmanager
async def running_api(settings: Settings, shared: socket | None = None) -> AsyncGenerator[Running]:
    """The front door alone, until the block ends. It starts no tools and owns no state. Raises CannotRun.

    `shared` is a socket that other front doors listen on too.
    """
    address = named_address(settings.temporal)
    named_database(settings.database)
    async with AsyncExitStack() as stack:
        watch = await stack.enter_async_context(watched_loop())
        state = open_state(settings.state.state_dir)
        listener = shared or bound_socket(settings.front)
        stack.callback(listener.close)
        store = await stack.enter_async_context(opened_store(settings, state))
        temporal = await named_temporal(settings.temporal, address)
        parts = _parts(temporal, store, partial(_require_a_host, store))
        checks = _checks(parts, temporal, store)
        recording = await _watched(stack, parts, temporal, store)
        calls = GuardedCalls(temporal.client, recording, patience_s=settings.temporal.temporal_patience_s)
        making = await stack.enter_async_context(making_of_door(store))
        door = await stack.enter_async_context(running_door(store, temporal.client, calls, making.calls.lane))
        dependencies = doors_of(store, door.client, KnowHubSyncs(temporal.client), checks, watch, door.figures, making.servers)
        await _serve(stack, dependencies, store, listener, Grace(settings.calls.shutdown_grace_s))
        yield Running(temporal, state, never_ended, url_of(listener))


@asynccontextmanager
async def running_im_alone(settings: Settings) -> AsyncGenerator[Running]:
    """A contact of the IM server, beside hosts, until the block ends. Raises CannotRun."""
    if settings.im.im_url is None:
        raise CannotRun("TOOL_AGENT_IM_URL is not set: there is no IM server to connect to. Set it to its WebSocket, ws://… or wss://….")
    address = named_address(settings.temporal)
    named_database(settings.database)
    async with AsyncExitStack() as stack:
        state = open_state(settings.state.state_dir)
        store = await stack.enter_async_context(opened_store(settings, state))
        temporal = await named_temporal(settings.temporal, address)
        im = await stack.enter_async_context(running_im(settings, state, temporal.client, store.database))
        if im is not None:
            yield Running(temporal, state, im.ended, im=im.address)


async def _serve(stack: AsyncExitStack, dependencies: Dependencies, store: Store, listener: socket, grace: Grace) -> None:
    """Answer HTTP and MCP until the stack is closed."""
    app = create_app(dependencies)
    await stack.enter_async_context(answering_mcp(app, store.mcp_sessions, store.settings, grace))
    await stack.enter_async_context(serving(app, listener, grace))


async def _host(stack: AsyncExitStack, store: Store, grace: Grace) -> tuple[TemporalAccess, RunningHost]:
    settings, owner = store.settings.temporal, Owner.of_this_process(store.state.root)
    guardian = stack.enter_context(Guardian(owner))
    temporal = await stack.enter_async_context(some_temporal(settings, store.state, guardian, owner))
    if endpoint := settings.nexus_endpoint:
        await kept_endpoint(temporal.client, endpoint, is_ours=temporal.folder is not None)
    return temporal, await stack.enter_async_context(running_host(store, temporal.client, guardian, owner, grace))


def named_address(settings: TemporalSettings) -> str:
    """The Temporal server that front doors and hosts share. Raises CannotRun."""
    if settings.temporal_address is None:
        raise CannotRun(
            "TOOL_AGENT_TEMPORAL_ADDRESS is not set: hosts and front doors meet at one Temporal server. Set it to its `host:port`, "
            "or run everything in one process with `python -m workers up`."
        )
    return settings.temporal_address


def named_database(settings: DatabaseSettings) -> str:
    """The database that front doors and hosts share. Raises CannotRun."""
    if settings.database_url is None:
        raise CannotRun(
            "TOOL_AGENT_DATABASE_URL is not set: hosts and front doors meet at one database. Set it to the same for all of them: "
            "postgresql+asyncpg://…, or on one machine sqlite+aiosqlite:////<state directory of a worker>/tool-agent.db."
        )
    return settings.database_url


def _parts(temporal: TemporalAccess, store: Store, worker: Check) -> Mapping[str, Remembered]:
    return _remembered(
        {
            "temporal": partial(check_temporal, temporal.client, temporal.folder),
            "database": store.database.check,
            "worker": worker,
            "state": partial(require_writing, _folders(store.state)),
        }
    )


def _checks(parts: Mapping[str, Remembered], temporal: TemporalAccess, store: Store) -> Mapping[str, Check]:
    disks = {"temporal": _disk_of_temporal(temporal), "database": _disk_of(store.database), "state": _folders(store.state)}
    return {name: partial(_with_room, disks.get(name, {}), check) for name, check in parts.items()}


def _remembered(checks: Mapping[str, Check]) -> Mapping[str, Remembered]:
    return {name: Remembered(check) for name, check in checks.items()}


async def _with_room(disks: Mapping[str, Path], check: Check) -> None:
    """A check that also fails at once for a disk without room."""
    require_room(disks)
    await check()


def _folders(state: StateDirectory) -> Mapping[str, Path]:
    return {"The state directory": state.root, "The folder for files": state.content}


def _disk_of(database: Database) -> Mapping[str, Path]:
    return {"The database's folder": database.file.parent} if database.file else {}


def _disk_of_temporal(temporal: TemporalAccess) -> Mapping[str, Path]:
    return {"Temporal's folder": temporal.folder} if temporal.folder else {}


async def _watched(stack: AsyncExitStack, parts: Mapping[str, Remembered], temporal: TemporalAccess, store: Store) -> Recording:
    """Watches whether calls can be recorded by the database and by Temporal."""
    disks = {**_disk_of(store.database), **_disk_of_temporal(temporal)}
    recording = Recording((parts["database"], parts["temporal"]), partial(require_room, disks))
    await stack.enter_async_context(recording.watched())
    return recording


async def _require_a_host(store: Store) -> None:
    if not await store.hosts.list_alive():
        raise NotReadyError("No host that runs tools is alive: start one with `python -m workers worker`.")
    await require_shared_files(store.hosts, store.settings.content, store.state)
