"""MCP servers whose tools are found and called here."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from toolagent.contracts.contract import Contract
from toolagent.contracts.external_tables import LeftOutTool
from toolagent.contracts.identifiers import EnvironmentName, HeaderName, ToolId

__all__ = [
    "McpServer",
    "McpServerName",
    "McpServerSpec",
    "McpServers",
    "McpTransport",
    "RemovedMcpServer",
    "WaitingVersion",
]

McpServerName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]*$", max_length=64)]
"""What a server is called here; the group of its tools has this name too."""

_PREFIX = r"^([a-z][a-z0-9_-]*)?$"


class McpTransport(StrEnum):
    """How a server is spoken to."""

    STDIO = "stdio"
    """It is started here, and speaks on its stdin and stdout."""
    STREAMABLE_HTTP = "streamable_http"
    SSE = "sse"
    """HTTP as servers of before 2025 speak it."""


class McpServerSpec(Contract):
    """Where a server is, and what it is given. Keys in `env` and `headers` are named: `secret:NAME`."""

    transport: McpTransport
    url: Annotated[str | None, Field(description="Where it is, with its path; null: it is started here.")] = None
    command: Annotated[str | None, Field(description="The program that it is; `uvx` and `npx` name a package.")] = None
    args: tuple[str, ...] = ()
    env: dict[EnvironmentName, str] = {}
    headers: dict[HeaderName, str] = {}
    prefix: Annotated[str | None, Field(description="Begins the ids of its tools; null: the name; empty: nothing does.")] = None
    trusted: Annotated[bool, Field(description="What it says of side effects and repeating is believed.")] = False
    allow_hosts: Annotated[tuple[str, ...], Field(description="Hosts that one that is started here may reach.")] = ()


class WaitingVersion(Contract):
    """A tool whose definition has changed: calls get it once it is activated."""

    tool_id: ToolId
    version: str


class McpServer(Contract):
    """A server, its tools, and how the last look at it ended."""

    name: McpServerName
    spec: McpServerSpec
    from_file: Annotated[bool, Field(description="It stands in `mcp.json`; else it was registered.")] = False
    tool_ids: tuple[ToolId, ...] = ()
    left_out: Annotated[tuple[LeftOutTool, ...], Field(description="At most 50 of its tools that are none here.")] = ()
    left_out_total: int = 0
    waiting: Annotated[tuple[WaitingVersion, ...], Field(description="Changed definitions, for somebody to activate.")] = ()
    gone: Annotated[tuple[ToolId, ...], Field(description="Tools that it does not list any more; they are `unavailable`.")] = ()
    registered_at: datetime
    refreshed_at: Annotated[datetime | None, Field(description="When it was asked last with success; null: never.")] = None
    attempted_at: Annotated[datetime | None, Field(description="When it was asked last; null: never yet.")] = None
    error: Annotated[str, Field(description="Why the last look at it failed; empty: it did not. Its tools stay.")] = ""


class McpServers(Contract):
    """All servers, by name."""

    servers: tuple[McpServer, ...]


class RemovedMcpServer(Contract):
    """A server that is not here any more, and how many tools went with it."""

    name: McpServerName
    tools: int
