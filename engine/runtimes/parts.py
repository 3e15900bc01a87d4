"""Dependencies of the runtimes, assembled in `workers/`."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.runtimes.builtin.tool import BuiltinTool
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.http.destination import Judge
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.remote_keys import Secrets
from engine.runtimes.local.boxed_runs import LocalSettings, Sandboxing
from engine.runtimes.mcp.oauth.logins import Logins
from engine.runtimes.process.processes import Launcher
from engine.runtimes.projects import Projects
from engine.runtimes.scripts.service import ScriptService


@dataclass(frozen=True, slots=True)
class RuntimeParts:
    """The caller closes `http` with `aclose`, and the launcher's guardian with `close`."""

    local: LocalSettings
    launcher: Launcher
    sandboxing: Sandboxing
    http: HttpExchange
    secrets: Secrets
    builtin_tools: Mapping[str, BuiltinTool]
    projects: Projects | None = None
    """The projects that are not in the data folder."""
    scripts: ScriptService | None = None
    """Executes scripts."""
    docker: DockerParts | None = None
    """The Docker engine and container settings; by default the local engine with default settings."""
    tables: HttpExchange | None = None
    """The client for tools of external tables, which reaches only their addresses; by default `http`."""
    mcp_servers: Judge | None = None
    """Judges the addresses of registered MCP servers; by default public addresses are allowed."""
    mcp_logins: Logins | None = None
    """The logins at registered MCP servers."""
