"""What runtimes are made of; put together in `workers/`."""

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
    """Their maker closes them: `http` with `aclose`, the launcher's guardian with `close`."""

    local: LocalSettings
    launcher: Launcher
    sandboxing: Sandboxing
    http: HttpExchange
    secrets: Secrets
    builtin_tools: Mapping[str, BuiltinTool]
    projects: Projects | None = None
    """Where projects come from that are not in the data folder."""
    scripts: ScriptService | None = None
    """What executes scripts, if anything does."""
    docker: DockerParts | None = None
    """The engine for containers and what they are like; without it the local one, used as no setting says otherwise."""
    tables: HttpExchange | None = None
    """Reaches the tools of external tables, and no other addresses than these may lead to; without it `http` does."""
    mcp_servers: Judge | None = None
    """Which addresses registered MCP servers may be at; without it public ones."""
    mcp_logins: Logins | None = None
    """The logins at registered MCP servers."""
