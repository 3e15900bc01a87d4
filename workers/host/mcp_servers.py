"""Registered MCP servers on this host."""

import asyncio
import hashlib
from collections.abc import Callable

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
from workers.state.mcp_key import state_key_of
from workers.state.secrets import secrets_of
from workers.storage import Store

_AGAIN_S = 10.0

_log = structlog.stdlib.get_logger(__name__)


def logins_of(store: Store) -> McpLogins:
    """Logins at registered MCP servers. Raises CannotRun."""
    keys = secrets_of(store.state)
    # Not the key that seals the state of clients, so that this state is no login.
    key = hashlib.sha256(f"logins at MCP servers: {state_key_of(keys)}".encode()).hexdigest()
    ask = asking(server_judge(store.settings))
    return McpLogins(McpLoginRows(store.database), AESGCMRequestStateCodec([key]), ask, keys.resolve)


def mcp_servers_of(store: Store, runs: HostRuntimes, logins: McpLogins) -> RegisteredServers:
    """Raises TypeError if the runtime of MCP servers is another one."""
    runtime, tooling, folder = runs.runtimes["mcp"], runs.tooling, store.state.root / "mcp-servers"
    if not isinstance(runtime, RemoteMcpRuntime):
        raise TypeError("The runtime of MCP servers is another one.")
    # Remove what a dead process left.
    discard(folder)
    executor, programs, installer = tooling.executor, tooling.programs, tooling.installer
    parts = PackageParts(
        folder,
        ProjectLocks(UvRuns(executor, programs, installer)),
        NpmRuns(executor, programs, installer),
        runs.parts.sandboxing.environments,
        store.archives,
    )
    return servers_of(store, ServerLooks(runtime, PackageServers(parts)), logins)


def strays_of(store: Store) -> Strays:
    """Finds rows and secrets of MCP servers that do not exist any more."""
    return Strays(McpLoginRows(store.database), SecretMentions(store.database), secrets_of(store.state))


def noticing(catalog: ImportCatalog, notice: Callable[[], None]) -> ImportCatalog:
    """The import of the catalog, followed by `notice`."""

    async def run() -> tuple[CatalogFault, ...]:
        faults = await catalog()
        notice()
        return faults

    return run


async def watch(servers: RegisteredServers) -> None:
    """Look at servers that are due, for ever. It runs beside everything else, because an installation may take long."""
    while True:
        try:
            await servers.watch()
        except StoreUnavailableError as error:
            _log.warning("mcp_servers_not_looked_at", reason=str(error), then=f"again in {_AGAIN_S:g} s")
        await asyncio.sleep(_AGAIN_S)
        servers.look_again()
