"""A tool of an MCP server."""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field

from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import HeaderName, NonEmpty, SecretName
from toolagent.contracts.mcp_oauth import McpOAuth
from toolagent.contracts.sources.source import PackedSource, ScriptLanguage, SharedProcess, Traits, WithoutUser

__all__ = ["McpHints", "McpSource", "Revision"]


class McpHints(Contract):
    """A server's statements about a tool; null: none. They count for trusted servers only."""

    title: str | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


Revision: TypeAlias = Literal["2025-11-25", "2026-07-28"]

_MODERN: Revision = "2026-07-28"


class McpSource(PackedSource):
    """A tool of an MCP server, which is reached over HTTP (`url`), or started here with stdin and stdout.

    A project in `host_dir` is started as `main.py`, or by `command`. `command` alone is a program of the machine.
    """

    mended = ("host_dir", "content", "command", "tool_name")

    type: Literal["mcp"] = "mcp"
    tool_name: NonEmpty
    """Its name at the server."""
    url: Annotated[str, WithoutUser] | None = None
    """The address of the server, with its path: `https://example.com/mcp`."""
    transport: Literal["streamable_http", "sse"] = "streamable_http"
    """The transport for `url`; `sse` is that of servers before 2025."""
    command: tuple[str, ...] = ()
    """Program and arguments. The program is searched in the project's environment first."""
    host_dir: Annotated[str | None, Field(min_length=1)] = None
    """Folder of the server's project, relative to the data folder."""
    content: str | None = None
    """The project's files in the content store, by the id of their archive; set at import."""
    environment: dict[str, str] = {}
    """Environment variables of the started server. A value `secret:NAME` is replaced by that secret."""
    revision: Revision | None = None
    """The protocol revision to try first; unset: 2026-07-28 over HTTP, 2025-11-25 with a program."""
    process: SharedProcess = None
    remote_api_key: SecretName | None = None
    """The name of a secret, `secret:NAME`; never the key itself."""
    auth_header: HeaderName = "Authorization"
    auth_scheme: str = "Bearer"
    """Precedes the key; empty: the key alone is sent."""
    headers: dict[HeaderName, str] = {}
    """Further headers. `secret:NAME`, also after a scheme, is replaced by that secret."""
    oauth: McpOAuth | None = None
    """The client that logs in at a registered server."""
    only_public: bool = False
    """Whether it may be reached at public addresses only."""
    server: str | None = None
    """The registered server of the tool. Its URL may lead where `TOOL_AGENT_MCP_ALLOW` allows."""
    hints: McpHints | None = None

    @property
    def traits(self) -> Traits:
        if self.url is not None:
            shown = (self.remote_api_key or "", self.url, *self.headers.values())
            return Traits(BackendRuntime.REMOTE, servers=(self.url,), shown=shown, only_public=self.only_public, asks=True, in_blocks=True)
        return Traits(BackendRuntime.LOCAL, on_host=True, stays_up=True, apart=True, asks=True, in_blocks=True)

    @property
    def is_modern_first(self) -> bool:
        """Whether 2026-07-28 is tried first. Older programs may exit at an unknown request."""
        return self.revision == _MODERN or (self.revision is None and self.url is not None and self.transport == "streamable_http")

    @property
    def project(self) -> str | None:
        return self.host_dir

    @property
    def main(self) -> tuple[str, ScriptLanguage] | None:
        return None if self.command else ("main.py", ScriptLanguage.PYTHON)

    @property
    def remedy(self) -> str:
        is_ours = self.host_dir is not None and self.url is None
        return "" if is_ours else "is one of an MCP server. Repair the server, or tell its operator."

    def packed_as(self, archive: str | None) -> Self:
        """The source with these files; unchanged for a server elsewhere, or a program of the machine."""
        return self if self.host_dir is None else super().packed_as(archive)
