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
    """What a server says of a tool; null: nothing. It counts for trusted servers only."""

    title: str | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


Revision: TypeAlias = Literal["2025-11-25", "2026-07-28"]

_MODERN: Revision = "2026-07-28"


class McpSource(PackedSource):
    """A tool of an MCP server: one that is reached over HTTP (`url`), or one that is started here and speaks on its stdin and stdout.

    `host_dir` is started as `main.py`, or as `command` says; `command` alone is a program of the machine.
    """

    mended = ("host_dir", "content", "command", "tool_name")

    type: Literal["mcp"] = "mcp"
    tool_name: NonEmpty
    """What the server calls it."""
    url: Annotated[str, WithoutUser] | None = None
    """Where the server is, with its path: `https://example.com/mcp`."""
    transport: Literal["streamable_http", "sse"] = "streamable_http"
    """How `url` is spoken to; `sse` is what servers of before 2025 speak."""
    command: tuple[str, ...] = ()
    """Program and arguments; the program is looked for in the project's environment first."""
    host_dir: Annotated[str | None, Field(min_length=1)] = None
    """Folder of the server's project, relative to the data folder."""
    content: str | None = None
    """The project's files in the content store, by the id of their archive; set at import."""
    environment: dict[str, str] = {}
    """Variables of the server that is started; `secret:NAME` as a value is that secret."""
    revision: Revision | None = None
    """The revision of the protocol that is tried first; unset: 2026-07-28 by HTTP, 2025-11-25 with a program."""
    process: SharedProcess = None
    remote_api_key: SecretName | None = None
    """The name of a secret, `secret:NAME`; never the key itself."""
    auth_header: HeaderName = "Authorization"
    auth_scheme: str = "Bearer"
    """Written before the key; empty sends the key alone."""
    headers: dict[HeaderName, str] = {}
    """Further headers; `secret:NAME`, also after a scheme, is that secret."""
    oauth: McpOAuth | None = None
    """The client that logs in at a registered server."""
    only_public: bool = False
    """Ask it only at public addresses."""
    server: str | None = None
    """The registered server that it is a tool of: its URL may lead where `TOOL_AGENT_MCP_ALLOW` lets servers be."""
    hints: McpHints | None = None

    @property
    def traits(self) -> Traits:
        if self.url is not None:
            shown = (self.remote_api_key or "", self.url, *self.headers.values())
            return Traits(BackendRuntime.REMOTE, servers=(self.url,), shown=shown, only_public=self.only_public, asks=True, in_blocks=True)
        return Traits(BackendRuntime.LOCAL, on_host=True, stays_up=True, apart=True, asks=True, in_blocks=True)

    @property
    def is_modern_first(self) -> bool:
        """Whether 2026-07-28 is tried first. Programs of before may end at a request that they do not know."""
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
        """The same with these files; unchanged for a server elsewhere, or a program of the machine."""
        return self if self.host_dir is None else super().packed_as(archive)
