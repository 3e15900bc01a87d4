"""The tools that a front door alone can call: built-in tools, and tools on other servers."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from engine.calling.door_tools import is_served
from engine.calling.intake import Intake
from engine.calls.call_folders import CallFolders
from engine.mcp_servers.looking import ServerLooks
from engine.runtimes.builtin.runtime import BuiltinRuntime
from engine.runtimes.http.runtime import RemoteRuntime
from engine.runtimes.mcp.remote import RemoteMcpRuntime
from engine.runtimes.running.door_supervisor import DoorSupervisor
from engine.runtimes.runtime import AnyRuntime
from workers.destinations import server_judge
from workers.host.mcp_servers import logins_of
from workers.host.runtimes import exchanges_of
from workers.host.sandbox import policy_of
from workers.parts import CallMaking, builtins_of, servers_of
from workers.state.secrets import secrets_of
from workers.storage import Store
from workers.upstreams import McpSide, running_upstreams


@dataclass(frozen=True, slots=True)
class DoorMaking:
    """Makes calls, and has the MCP servers. Servers at a URL may be registered here; others are started on hosts."""

    calls: CallMaking
    servers: McpSide


@asynccontextmanager
async def making_of_door(store: Store) -> AsyncGenerator[DoorMaking]:
    """Makes calls in a process that is not a host, until the block ends. Raises CannotRun."""
    settings, secrets = store.settings, secrets_of(store.state)
    secrets.check()
    builtin = {tool_id: tool for tool_id, tool in builtins_of(settings).items() if not tool.starts_processes}
    async with AsyncExitStack() as stack:
        logins, running = logins_of(store), settings.running
        stack.push_async_callback(logins.close)
        http, tables = exchanges_of(stack, settings, policy_of(settings.sandbox))
        mcp = RemoteMcpRuntime(running.tool_health_timeout_s, running.stop_grace_s, http, secrets.resolve, server_judge(settings), logins)
        runtimes: dict[str, AnyRuntime] = {
            "builtin": BuiltinRuntime(builtin),
            "remote": RemoteRuntime(http, secrets.resolve, tables),
            "mcp": mcp,
        }
        supervisor = DoorSupervisor(runtimes, partial(is_served, settings.calls.lanes, builtin, secrets.resolve))
        stack.push_async_callback(supervisor.close)
        # Calls with files are not made here, so these folders stay empty.
        folders, intake = CallFolders(store.state.calls), Intake(settings.calls.bucket_limits)
        making = CallMaking(store, supervisor, frozenset(runtimes), folders, intake)
        upstreams = await stack.enter_async_context(running_upstreams(store.database, supervisor, mcp))
        yield DoorMaking(making, McpSide(servers_of(store, ServerLooks(mcp, None), logins), upstreams))
