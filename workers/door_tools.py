"""The tools that a front door alone reaches: what is built in, and what others run."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from engine.calling.door_tools import is_served
from engine.calling.intake import Intake
from engine.calls.call_folders import CallFolders
from engine.mcp_servers.looking import ServerLooks
from engine.runtimes.builtin.runtime import BuiltinRuntime
from engine.runtimes.http.destination import BeforeSending
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.public_servers import PublicServers
from engine.runtimes.http.runtime import RemoteRuntime
from engine.runtimes.mcp.remote import RemoteMcpRuntime
from engine.runtimes.running.door_supervisor import DoorSupervisor
from engine.runtimes.runtime import AnyRuntime
from workers.destinations import server_judge, table_destinations
from workers.host.mcp_servers import logins_of
from workers.host.sandbox import policy_of
from workers.parts import CallMaking, builtins_of, servers_of
from workers.settings.environment import environment
from workers.settings.whole import Settings
from workers.state.directory import StateDirectory
from workers.state.secrets import SecretSource
from workers.storage import Store
from workers.upstreams import McpSide, running_upstreams


@dataclass(frozen=True, slots=True)
class DoorMaking:
    """What makes calls, and the MCP servers: those at a URL may be registered here, others are started on hosts."""

    calls: CallMaking
    servers: McpSide


@asynccontextmanager
async def making_of_door(settings: Settings, state: StateDirectory, store: Store) -> AsyncGenerator[DoorMaking]:
    """What makes calls in a process that is no host, until the block ends. Raises CannotRun."""
    secrets = SecretSource(environment(), state.root / "secrets")
    secrets.check()
    builtin = {tool_id: tool for tool_id, tool in builtins_of(settings).items() if not tool.starts_processes}
    http = HttpExchange(
        max_result_bytes=settings.limits.max_result_bytes,
        max_result_values=settings.limits.max_result_values,
        public=PublicServers(policy_of(settings.sandbox).private_hosts),
    )
    tables = http.with_judge(BeforeSending(table_destinations(settings)))
    running = settings.running
    logins = logins_of(store, settings, state)
    mcp = RemoteMcpRuntime(running.tool_health_timeout_s, running.stop_grace_s, http, secrets.resolve, server_judge(settings), logins)
    runtimes: dict[str, AnyRuntime] = {
        "builtin": BuiltinRuntime(builtin),
        "remote": RemoteRuntime(http, secrets.resolve, tables),
        "mcp": mcp,
    }
    async with AsyncExitStack() as stack:
        stack.push_async_callback(logins.close)
        stack.push_async_callback(http.aclose)
        stack.push_async_callback(tables.aclose)
        supervisor = DoorSupervisor(runtimes, partial(is_served, settings.calls.lanes, builtin, secrets.resolve))
        stack.push_async_callback(supervisor.close)
        # No call that may have files is made here: nothing is ever put into these folders.
        folders, intake = CallFolders(state.calls), Intake(settings.calls.bucket_limits)
        making = CallMaking(store, supervisor, frozenset(runtimes), settings, state.host, folders, intake)
        upstreams = await stack.enter_async_context(running_upstreams(store.database, supervisor, mcp))
        yield DoorMaking(making, McpSide(servers_of(store, settings, state, ServerLooks(mcp, None), logins), upstreams))
