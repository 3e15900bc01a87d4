"""MCP servers whose tools are found and called here."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints

from toolagent.contracts.contract import Contract
from toolagent.contracts.external_tables import LeftOutTool
from toolagent.contracts.identifiers import EnvironmentName, HeaderName, ToolId
from toolagent.contracts.mcp_oauth import McpOAuth

__all__ = [
    "PREFIX_PATTERN",
    "SERVER_NAME_PATTERN",
    "McpServer",
    "McpServerName",
    "McpServerSpec",
    "McpServers",
    "McpTransport",
    "RemovedMcpServer",
    "WaitingVersion",
]

SERVER_NAME_PATTERN = r"^[a-z][a-z0-9_-]*$"
PREFIX_PATTERN = r"^([a-z][a-z0-9_-]*)?$"

McpServerName = Annotated[str, StringConstraints(pattern=SERVER_NAME_PATTERN, max_length=64)]
"""What a server is called here; the group of its tools has this name too."""

_Rights = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=1_000)], ...], Field(max_length=50, strict=False)]


class McpTransport(StrEnum):
    """How a server is spoken to."""

    STDIO = "stdio"
    """It is started here, and speaks on its stdin and stdout."""
    STREAMABLE_HTTP = "streamable_http"
    SSE = "sse"
    """HTTP as servers of before 2025 speak it."""


_IN_THE_FIELD = {"http": McpTransport.STREAMABLE_HTTP, "streamable-http": McpTransport.STREAMABLE_HTTP}


def _transport(said: object) -> object:
    """Clients' files write it in several ways."""
    return _IN_THE_FIELD.get(said.replace("streamableHttp", "http"), said) if isinstance(said, str) else said


class McpServerSpec(Contract):
    """Where a server is and what it is given, in the form of clients' files. Keys in `env` and `headers` are named: `secret:NAME`."""

    type: Annotated[McpTransport, Field(strict=False), BeforeValidator(_transport)] | None = None
    """Null: it follows from `url` or `command`."""
    url: Annotated[str | None, Field(max_length=2_000)] = None
    """Where it is, with its path; null: it is started here."""
    command: Annotated[str | None, Field(min_length=1, max_length=1_000)] = None
    """The program that it is; `uvx` and `npx` name a package."""
    args: Annotated[tuple[Annotated[str, Field(max_length=4_000)], ...], Field(max_length=100, strict=False)] = ()
    env: Annotated[dict[EnvironmentName, Annotated[str, Field(max_length=8_000)]], Field(max_length=100)] = {}
    headers: Annotated[dict[HeaderName, Annotated[str, Field(max_length=8_000)]], Field(max_length=50)] = {}
    oauth: McpOAuth | None = None
    """The client that logs in at a `url`; null: the service registers itself where a login is wanted."""
    prefix: Annotated[str | None, Field(pattern=PREFIX_PATTERN, max_length=64)] = None
    """Begins the ids of its tools; null: the name; empty: nothing does."""
    trusted: bool = False
    """What it says of side effects and repeating is believed."""
    allow_hosts: _Rights = ()
    """Hosts that one which is started here may reach."""
    allow_read: _Rights = ()
    """Folders of the machine that it may read, of those that the policy names."""
    allow_write: _Rights = ()
    """Folders of the machine that it may write, of those that the policy names."""


class WaitingVersion(Contract):
    """A tool whose definition has changed, or that is new: calls get it once it is activated."""

    tool_id: ToolId
    version: str
    is_new: bool = False
    """The server did not list the tool when it was added; no version of it can be called."""


class McpServer(Contract):
    """A server, its tools, and how the last look at it ended."""

    name: McpServerName
    spec: McpServerSpec
    from_file: bool = False
    """It stands in `mcp.json`; else it was registered."""
    tool_ids: tuple[ToolId, ...] = ()
    left_out: tuple[LeftOutTool, ...] = ()
    """At most 50 of its tools that are none here."""
    left_out_total: int = 0
    waiting: tuple[WaitingVersion, ...] = ()
    """Changed definitions and new tools, for the operator to activate."""
    gone: tuple[ToolId, ...] = ()
    """Tools that it does not list any more; they are `unavailable`."""
    registered_at: datetime
    refreshed_at: datetime | None = None
    """When it was asked last with success; null: never."""
    attempted_at: datetime | None = None
    """When it was asked last; null: never yet."""
    error: str = ""
    """Why the last look at it failed; empty: it did not. Its tools stay."""
    login_required: bool = False
    """Its tools cannot be called, or not all, until a person logs in there."""
    login_url: str | None = None
    """To be opened in a browser; null: no login is under way."""
    login_until: datetime | None = None
    """Until when `login_url` is good."""


class McpServers(Contract):
    """All servers, by name."""

    servers: tuple[McpServer, ...]


class RemovedMcpServer(Contract):
    """A server that is not here any more, and how many tools went with it."""

    name: McpServerName
    tools: int
