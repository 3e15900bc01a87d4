"""How a tool runs: one module per source type and one line here, the supervisor of processes, what ends them."""

from collections.abc import Callable, Mapping

from engine.runtimes.builtin.runtime import BuiltinRuntime
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.http.runtime import RemoteRuntime
from engine.runtimes.local.runtime import LocalRuntime
from engine.runtimes.mcp.runtime import McpRuntime
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.runtime import AnyRuntime
from engine.runtimes.scripts.runtime import ScriptRuntime

__all__ = ["RUNTIMES", "make_runtimes"]

RUNTIMES: Mapping[str, Callable[[RuntimeParts], AnyRuntime]] = {
    "local": lambda parts: LocalRuntime(parts.local, parts.launcher, parts.sandboxing, parts.http, parts.projects, parts.secrets),
    "remote": lambda parts: RemoteRuntime(parts.http, parts.secrets, parts.tables),
    "docker": lambda parts: DockerRuntime(
        parts.docker or DockerParts.by_default(parts.local.data, parts.local.state), parts.http, parts.projects
    ),
    "script": lambda parts: ScriptRuntime(parts.scripts, parts.projects, parts.secrets),
    "mcp": lambda parts: McpRuntime(
        parts.local, parts.launcher, parts.sandboxing, parts.http, parts.secrets, parts.projects, parts.mcp_servers, parts.mcp_logins
    ),
    "builtin": lambda parts: BuiltinRuntime(parts.builtin_tools, parts.scripts),
}
"""Runtimes by the type of source that they execute."""


def make_runtimes(parts: RuntimeParts) -> dict[str, AnyRuntime]:
    """One runtime of each kind, for the supervisor."""
    return {tag: make(parts) for tag, make in RUNTIMES.items()}
