"""The MCP servers of a process, with their resources and prompts."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass

from engine.calling.upstreams import Upstreams
from engine.mcp_servers.servers import RegisteredServers
from engine.runtimes.mcp.remote import RemoteMcpRuntime
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.runtime import AnyRuntime
from engine.store.catalog_state import CatalogState
from engine.store.database import Database
from engine.store.tools import ToolTable


@dataclass(frozen=True, slots=True)
class McpSide:
    """The registered MCP servers, and their resources and prompts."""

    registered: RegisteredServers
    upstreams: Upstreams


@asynccontextmanager
async def running_upstreams(database: Database, supervisor: Supervisor, runtime: AnyRuntime) -> AsyncGenerator[Upstreams]:
    """The resources and prompts of servers that this process reaches, until the block ends."""
    upstreams = Upstreams(ToolTable(database), CatalogState(database), supervisor)
    with runtime.changes.heard_by(upstreams.note_change) if isinstance(runtime, RemoteMcpRuntime) else nullcontext():
        try:
            yield upstreams
        finally:
            await upstreams.close()
