"""The runtimes of this host, made from settings."""

import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import uv

from engine.runtimes import make_runtimes
from engine.runtimes.builtin.tool import BuiltinTool
from engine.runtimes.environments import Environments
from engine.runtimes.guardian import Guardian
from engine.runtimes.http_exchange import HttpExchange
from engine.runtimes.local import LocalSettings
from engine.runtimes.ownership import Owner
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.processes import Launcher
from engine.runtimes.projects import Projects
from engine.runtimes.runtime import AnyRuntime
from workers.secrets import SecretSource
from workers.settings import Settings, environment
from workers.state import StateDirectory

__all__ = ["running_runtimes"]

_TOOL_VARIABLES = ("PATH", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""What a tool may see of our environment."""

_UV_VARIABLES = (
    "HOME",
    "UV_CACHE_DIR",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_OFFLINE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "all_proxy",
)
"""What uv may see besides: where its cache and its settings are, and how it reaches the package index."""


@asynccontextmanager
async def running_runtimes(
    settings: Settings, state: StateDirectory, guardian: Guardian, owner: Owner, builtin: Mapping[str, BuiltinTool], projects: Projects
) -> AsyncGenerator[Mapping[str, AnyRuntime]]:
    """By the tag of the source they run. Raises CannotRun when the secrets are not private."""
    secrets = SecretSource(environment(), state.root / "secrets")
    secrets.check()
    launcher = Launcher(owner, guardian, _chosen(_TOOL_VARIABLES), shutil.which("setpriv"))
    environments = Environments(
        state.root / "environments", uv.find_uv_bin(), launcher, _chosen(_UV_VARIABLES), build_timeout_s=settings.tool_start_timeout_s
    )
    local = LocalSettings(
        data=settings.data_dir.absolute(),
        state=state.root,
        start_timeout_s=settings.tool_health_timeout_s,
        stop_grace_s=settings.stop_grace_s,
    )
    http = HttpExchange(max_result_bytes=settings.max_result_bytes)
    try:
        yield make_runtimes(RuntimeParts(local, launcher, environments, http, secrets.resolve, builtin, projects))
    finally:
        await http.aclose()


def _chosen(names: tuple[str, ...]) -> dict[str, str]:
    everything = environment()
    return {name: everything[name] for name in names if name in everything} | {"LANG": "C.UTF-8"}
