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
"""The name of a server here. The group of its tools has the same name."""

_Rights = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=1_000)], ...], Field(max_length=50, strict=False)]


class McpTransport(StrEnum):
    """The transport to a server."""

    STDIO = "stdio"
    """The server is started here, and uses its stdin and stdout."""
    STREAMABLE_HTTP = "streamable_http"
    SSE = "sse"
    """HTTP as used by servers before 2025."""


_IN_THE_FIELD = {"http": McpTransport.STREAMABLE_HTTP, "streamable-http": McpTransport.STREAMABLE_HTTP}


def _transport(said: object) -> object:
    """Configuration files of clients write transports in several ways."""
    return _IN_THE_FIELD.get(said.replace("streamableHttp", "http"), said) if isinstance(said, str) else said


class McpServerSpec(Contract):
    """How to reach or start a server, in the form of clients' files. Secrets in `env` and `headers` are named: `secret:NAME`."""

    type: Annotated[McpTransport, Field(strict=False), BeforeValidator(_transport)] | None = None
    """Null: follows from `url` or `command`."""
    url: Annotated[str | None, Field(max_length=2_000)] = None
    """Its address, with the path; null: it is started here."""
    command: Annotated[str | None, Field(min_length=1, max_length=1_000)] = None
    """The program to start; `uvx` and `npx` name a package."""
    args: Annotated[tuple[Annotated[str, Field(max_length=4_000)], ...], Field(max_length=100, strict=False)] = ()
    env: Annotated[dict[EnvironmentName, Annotated[str, Field(max_length=8_000)]], Field(max_length=100)] = {}
    headers: Annotated[dict[HeaderName, Annotated[str, Field(max_length=8_000)]], Field(max_length=50)] = {}
    oauth: McpOAuth | None = None
    """The client that logs in at a `url`; null: the service registers itself if a login is required."""
    prefix: Annotated[str | None, Field(pattern=PREFIX_PATTERN, max_length=64)] = None
    """The prefix of the ids of its tools; null: its name; empty: none."""
    trusted: bool = False
    """Whether its statements about side effects and repetition are trusted."""
    allow_hosts: _Rights = ()
    """Hosts that a server started here may reach."""
    allow_read: _Rights = ()
    """Folders of the machine that it may read, if the policy allows them."""
    allow_write: _Rights = ()
    """Folders of the machine that it may write, if the policy allows them."""


class WaitingVersion(Contract):
    """A new tool, or a changed definition, which must be activated before it is called."""

    tool_id: ToolId
    version: str
    is_new: bool = False
    """The tool is new since the server was added, and no version of it can be called."""


class McpServer(Contract):
    """A server, its tools, and the outcome of the last request to it."""

    name: McpServerName
    spec: McpServerSpec
    from_file: bool = False
    """Whether it comes from `mcp.json`. Otherwise it was registered."""
    tool_ids: tuple[ToolId, ...] = ()
    left_out: tuple[LeftOutTool, ...] = ()
    """At most 50 of its tools that are left out here."""
    left_out_total: int = 0
    waiting: tuple[WaitingVersion, ...] = ()
    """Changed definitions and new tools that the operator may activate."""
    gone: tuple[ToolId, ...] = ()
    """Tools that it no longer lists. They are `unavailable`."""
    registered_at: datetime
    refreshed_at: datetime | None = None
    """The last successful listing; null: none."""
    attempted_at: datetime | None = None
    """The last attempt to list its tools; null: none."""
    error: str = ""
    """Why the last listing failed; empty if it succeeded. After a failure, its tools stay."""
    login_required: bool = False
    """Some or all of its tools cannot be called until a person logs in there."""
    login_url: str | None = None
    """The page to open in a browser; null: no login is under way."""
    login_until: datetime | None = None
    """When `login_url` expires."""


class McpServers(Contract):
    """All servers, by name."""

    servers: tuple[McpServer, ...]


class RemovedMcpServer(Contract):
    """A removed server, and the number of tools that were removed with it."""

    name: McpServerName
    tools: int
