"""What runtimes are made of; put together in `workers/`."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.runtimes.builtin.tool import BuiltinTool
from engine.runtimes.environments import Environments
from engine.runtimes.http_exchange import HttpExchange
from engine.runtimes.local import LocalSettings
from engine.runtimes.processes import Launcher
from engine.runtimes.projects import Projects
from engine.runtimes.remote import Secrets

__all__ = ["RuntimeParts"]


@dataclass(frozen=True, slots=True)
class RuntimeParts:
    """Whoever makes the parts closes them: `http` with `aclose`, the launcher's guardian with `close`."""

    local: LocalSettings
    launcher: Launcher
    environments: Environments
    http: HttpExchange
    secrets: Secrets
    builtin_tools: Mapping[str, BuiltinTool]
    projects: Projects | None = None
    """Where projects come from that are not in the data folder."""
