"""The tools that a front door alone reaches: what is built in, and what others run."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from engine.calling.door_tools import is_served
from engine.calling.intake import Intake
from engine.calls.call_folders import CallFolders
from engine.runtimes.builtin.runtime import BuiltinRuntime
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.public_servers import PublicServers
from engine.runtimes.http.runtime import RemoteRuntime
from engine.runtimes.mcp.remote import RemoteMcpRuntime
from engine.runtimes.running.door_supervisor import DoorSupervisor
from engine.runtimes.runtime import AnyRuntime
from workers.host.sandbox import policy_of
from workers.parts import CallMaking, Store, builtins_of
from workers.settings.environment import environment
from workers.settings.whole import Settings
from workers.state.directory import StateDirectory
from workers.state.secrets import SecretSource


@asynccontextmanager
async def making_of_door(settings: Settings, state: StateDirectory, store: Store) -> AsyncGenerator[CallMaking]:
    """What makes calls in a process that is no host, until the block ends. Raises CannotRun."""
    secrets = SecretSource(environment(), state.root / "secrets")
    secrets.check()
    builtin = {tool_id: tool for tool_id, tool in builtins_of(settings).items() if not tool.starts_processes}
    http = HttpExchange(
        max_result_bytes=settings.limits.max_result_bytes,
        max_result_values=settings.limits.max_result_values,
        public=PublicServers(policy_of(settings.sandbox).private_hosts),
    )
    running = settings.running
    runtimes: dict[str, AnyRuntime] = {
        "builtin": BuiltinRuntime(builtin),
        "remote": RemoteRuntime(http, secrets.resolve),
        "mcp": RemoteMcpRuntime(running.tool_health_timeout_s, running.stop_grace_s, http, secrets.resolve),
    }
    async with AsyncExitStack() as stack:
        stack.push_async_callback(http.aclose)
        supervisor = DoorSupervisor(runtimes, partial(is_served, settings.calls.lanes, builtin, secrets.resolve))
        stack.push_async_callback(supervisor.close)
        # No call that may have files is made here: nothing is ever put into these folders.
        yield CallMaking(
            store, supervisor, frozenset(runtimes), settings, state.host, CallFolders(state.calls), Intake(settings.calls.bucket_limits)
        )
