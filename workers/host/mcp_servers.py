"""MCP servers on this host, made from settings."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import structlog
from mcp.server.request_state import AESGCMRequestStateCodec

from engine.disk.leftovers import discard
from engine.making.node_projects.npm_runs import NpmRuns
from engine.making.uv.locking import ProjectLocks
from engine.making.uv.runs import UvRuns
from engine.mcp_servers.logins import McpLogins
from engine.mcp_servers.looking import ServerLooks
from engine.mcp_servers.preparing import PackageParts, PackageServers
from engine.mcp_servers.servers import RegisteredServers
from engine.mcp_servers.strays import Strays
from engine.registry.catalog_watch import ImportCatalog
from engine.runtimes.mcp.oauth.sending import asking
from engine.runtimes.mcp.remote import RemoteMcpRuntime
from engine.store.mcp_logins import McpLoginRows
from engine.store.secret_mentions import SecretMentions
from toolagent.contracts.records import CatalogFault
from toolagent.core.failures import StoreUnavailableError
from workers.destinations import server_judge
from workers.host.runtimes import HostRuntimes
from workers.parts import servers_of
from workers.settings.environment import environment
from workers.settings.whole import Settings
from workers.state.directory import StateDirectory
from workers.state.mcp_key import state_key_of
from workers.state.secrets import SecretSource
from workers.storage import Store

_AGAIN_S = 10.0

_log = structlog.stdlib.get_logger(__name__)


def logins_of(store: Store, settings: Settings, state: StateDirectory) -> McpLogins:
    """Logins at registered MCP servers. Raises CannotRun."""
    keys = SecretSource(environment(), state.root / "secrets")
    # Another key than what clients carry is sealed with: what one of them brings is no login.
    key = hashlib.sha256(f"logins at MCP servers: {state_key_of(keys)}".encode()).hexdigest()
    ask = asking(server_judge(settings))
    return McpLogins(McpLoginRows(store.database), AESGCMRequestStateCodec([key]), ask, keys.resolve)


def mcp_servers_of(store: Store, settings: Settings, state: StateDirectory, runs: HostRuntimes, logins: McpLogins) -> RegisteredServers:
    """Raises TypeError where there is no such runtime."""
    runtime, tooling, folder = runs.runtimes["mcp"], runs.tooling, state.root / "mcp-servers"
    if not isinstance(runtime, RemoteMcpRuntime):
        raise TypeError("The runtime of MCP servers is another one.")
    # What a dead process left of its work.
    discard(folder)
    executor, programs, installer = tooling.executor, tooling.programs, tooling.installer
    parts = PackageParts(
        folder,
        ProjectLocks(UvRuns(executor, programs, installer)),
        NpmRuns(executor, programs, installer),
        runs.parts.sandboxing.environments,
        store.archives,
    )
    return servers_of(store, settings, state, ServerLooks(runtime, PackageServers(parts)), logins)


def strays_of(store: Store, state: StateDirectory) -> Strays:
    """What is kept for MCP servers that are not there."""
    return Strays(McpLoginRows(store.database), SecretMentions(store.database), SecretSource(environment(), state.root / "secrets"))


def noticing(catalog: ImportCatalog, notice: Callable[[], None]) -> ImportCatalog:
    """The same import, and then this."""

    async def run() -> tuple[CatalogFault, ...]:
        faults = await catalog()
        notice()
        return faults

    return run


@asynccontextmanager
async def watched_servers(servers: RegisteredServers) -> AsyncGenerator[None]:
    """Servers that are due are looked at beside everything else: nothing waits for an installation. Ends with the block."""
    task = asyncio.create_task(_watch(servers), name="look at MCP servers")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _watch(servers: RegisteredServers) -> None:
    while True:
        try:
            await servers.watch()
        except StoreUnavailableError as error:
            _log.warning("mcp_servers_not_looked_at", reason=str(error), then=f"again in {_AGAIN_S:g} s")
        await asyncio.sleep(_AGAIN_S)
        servers.look_again()
