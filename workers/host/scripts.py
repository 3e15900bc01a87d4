"""What executes scripts on this host, made from settings."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import structlog
import uv

from engine.runtimes.auditing.advisories import Advisories, Judge, refusing, unjudged
from engine.runtimes.auditing.advisory_warnings import AdvisoryWarnings
from engine.runtimes.auditing.audit import Audit
from engine.runtimes.environments.cache import CacheLimits
from engine.runtimes.environments.environments import ScriptEnvironments
from engine.runtimes.environments.execution import Executor
from engine.runtimes.environments.indexes import Index, Indexes, Installer
from engine.runtimes.environments.network import through
from engine.runtimes.environments.programs import Programs
from engine.runtimes.process.box import no_network
from engine.runtimes.process.processes import Launcher
from engine.runtimes.sandbox.egress import Egress
from engine.runtimes.sandbox.package_indexes import PackageIndexes
from engine.runtimes.sandbox.sandbox import Sandbox
from engine.runtimes.scripts.accounts import ScriptAccounts
from engine.runtimes.scripts.service import ScriptService
from toolagent.contracts.sources import ScriptLanguage
from workers.host.sandbox import policy_of
from workers.settings import Settings, environment
from workers.state.directory import StateDirectory

__all__ = ["indexes_of", "judging", "programs_of", "script_service", "tidied"]

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_TIDY_S = 3600.0

_PYTHON_INDEX = ("UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_STRATEGY")
_MEANS = {
    "UV_DEFAULT_INDEX": {"UV_DEFAULT_INDEX", "UV_INDEX_URL"},
    "UV_INDEX": {"UV_INDEX", "UV_EXTRA_INDEX_URL"},
    "npm_config_registry": {"npm_config_registry", "NPM_CONFIG_REGISTRY"},
}
_NPM_INDEX = ("npm_config_registry", "NPM_CONFIG_REGISTRY")
_ASKING = ("HOME", "UV_CONFIG_FILE", "UV_OFFLINE", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "NPM_CONFIG_USERCONFIG", "XDG_CONFIG_HOME")


def script_service(
    settings: Settings, state: StateDirectory, launcher: Launcher, sandbox: Sandbox | str, egress: Egress | None, audit: Audit, judge: Judge
) -> ScriptService:
    """`sandbox` is the one of this host, or why there is none. Without `egress` scripts and installations have no network."""
    everything = environment()
    programs = programs_of(settings)
    executor = Executor(launcher, sandbox)
    accounts = ScriptAccounts(audit, state.host)
    is_apart = isinstance(sandbox, str) or sandbox.level.has_own_network
    installing = through(egress, trusted=True, is_apart=is_apart) if egress else no_network
    installer = Installer(indexes_of(programs, everything), installing, settings.tool_start_timeout_s)
    folder = (settings.environments_dir or state.root / "environments").absolute()
    limits = CacheLimits(settings.environments_max_bytes, settings.environments_idle_hours * 3600)
    environments = ScriptEnvironments(folder, executor, programs, installer, accounts.installed, judge, limits)
    return ScriptService(
        settings.script_folder.absolute(),
        state.tools,
        executor,
        environments,
        variables=everything,
        network=through(egress, is_apart=is_apart) if egress else no_network,
        max_input_bytes=settings.max_params_bytes,
        max_result_values=settings.max_result_values,
        note=accounts.ran,
    )


@asynccontextmanager
async def judging(settings: Settings, launcher: Launcher, audit: Audit, host: str) -> AsyncGenerator[Judge]:
    """What the policy has done about dependencies that are known to be vulnerable; none of it goes on after the block."""
    everything = environment()
    seen = {name: everything[name] for name in (*_ASKING, *_PYTHON_INDEX) if name in everything}
    advisories = Advisories.of_uv(launcher, str(programs_of(settings).uv.file), seen)
    warnings = AdvisoryWarnings(advisories, audit, host)
    try:
        yield {"ignore": unjudged, "warn": warnings.judge, "refuse": refusing(advisories)}[policy_of(settings).vulnerable_dependencies]
    finally:
        await warnings.close()


def programs_of(settings: Settings) -> Programs:
    """Those of this machine, but for what a setting names."""
    return Programs.found(
        Path(uv.find_uv_bin()), node=settings.node_binary, bun=settings.bun_binary, pythons=settings.pythons, path=environment().get("PATH")
    )


@asynccontextmanager
async def tidied(environments: ScriptEnvironments) -> AsyncGenerator[None]:
    """Environments that nobody needs are removed, now and once an hour."""
    tidying = asyncio.create_task(_tidy(environments), name="tidy environments")
    try:
        yield
    finally:
        tidying.cancel()
        await asyncio.wait([tidying])


async def _tidy(environments: ScriptEnvironments) -> None:
    while True:
        for name in await environments.tidy():
            _log.info("removed_environment", name=name)
        await asyncio.sleep(_TIDY_S)


def indexes_of(programs: Programs, variables: Mapping[str, str]) -> Indexes:
    """As uv and npm are set up on this machine; the sandbox sees their addresses, none of their files."""
    node = programs.node.file if programs.node else None
    path = f"{node.parent}:{variables.get('PATH', '')}" if node else variables.get("PATH", "")
    seen = {name: variables[name] for name in (*_ASKING, *_PYTHON_INDEX, *_NPM_INDEX) if name in variables} | {"PATH": path}
    asked = PackageIndexes(
        str(programs.uv.file), seen, str(programs.npm) if programs.npm else None, str(programs.bun.file) if programs.bun else None
    )

    async def indexes(language: ScriptLanguage) -> Index:
        if language is ScriptLanguage.PYTHON:
            return Index(await asked.of_python(), _told(variables, asked.variables_of("python"), _PYTHON_INDEX))
        return Index(await asked.of_javascript(), _told(variables, asked.variables_of("javascript"), _NPM_INDEX))

    return indexes


def _told(variables: Mapping[str, str], effective: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """Variables of this machine as they are, as only they name an index; what files say by the variable of the same meaning."""
    own = {name: variables[name] for name in names if name in variables}
    return {name: value for name, value in effective.items() if not own.keys() & _MEANS.get(name, {name})} | own
