"""The tools that a front door alone reaches: what is built in, and what others run."""

import re
from collections.abc import AsyncGenerator, Container
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from engine.calling.intake import Intake
from engine.calls.call_folders import CallFolders
from engine.runtimes.builtin.runtime import BuiltinRuntime
from engine.runtimes.http.destination import BeforeSending
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.public_servers import PublicServers
from engine.runtimes.http.remote_keys import Secrets
from engine.runtimes.http.runtime import RemoteRuntime
from engine.runtimes.mcp.remote import RemoteMcpRuntime
from engine.runtimes.running.door_supervisor import DoorSupervisor
from engine.runtimes.runtime import AnyRuntime
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import SideEffectScope
from toolagent.contracts.sources import BuiltinSource, ToolSource
from toolagent_service.contracts.lanes import LaneMode
from workers.host.sandbox import policy_of
from workers.parts import CallMaking, Store, builtins_of, table_destinations
from workers.settings.environment import environment
from workers.settings.whole import Settings
from workers.state.directory import StateDirectory
from workers.state.secrets import SecretSource

_NAMED = re.compile(r"\bsecret:([A-Z][A-Z0-9_]*)")


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
    tables = http.with_judge(BeforeSending(table_destinations(settings)))
    running = settings.running
    runtimes: dict[str, AnyRuntime] = {
        "builtin": BuiltinRuntime(builtin),
        "remote": RemoteRuntime(http, secrets.resolve, tables),
        "mcp": RemoteMcpRuntime(running.tool_health_timeout_s, running.stop_grace_s, http, secrets.resolve),
    }
    async with AsyncExitStack() as stack:
        stack.push_async_callback(http.aclose)
        stack.push_async_callback(tables.aclose)
        supervisor = DoorSupervisor(runtimes, partial(is_taken, settings.calls.lanes, builtin, secrets.resolve))
        stack.push_async_callback(supervisor.close)
        # No call that may have files is made here: nothing is ever put into these folders.
        yield CallMaking(
            store, supervisor, frozenset(runtimes), settings, state.host, CallFolders(state.calls), Intake(settings.calls.bucket_limits)
        )


def is_taken(lanes: LaneMode, builtin: Container[str], secrets: Secrets, entry: ToolEntry) -> bool:
    """Whether all of its sources can be reached from here, and its calls may take the lane at all."""
    is_harmless = entry.manifest.side_effect_scope is SideEffectScope.NONE
    may = lanes is LaneMode.ALL or (lanes is LaneMode.HARMLESS and is_harmless)
    return may and bool(entry.sources) and all(_is_reached(source, builtin, secrets) for source in entry.sources)


def _is_reached(source: ToolSource, builtin: Container[str], secrets: Secrets) -> bool:
    if isinstance(source, BuiltinSource):
        return source.handler in builtin
    # Hosts keep the keys that came with their catalogs.
    named = (name for text in source.traits.shown for name in _NAMED.findall(text))
    return source.traits.elsewhere and all(map(secrets, named))
