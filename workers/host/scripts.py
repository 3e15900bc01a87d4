"""Executes scripts on this host."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import uv

from engine.runtimes.auditing.advisories import Advisories, Judge, refusing, unjudged
from engine.runtimes.auditing.advisory_warnings import AdvisoryWarnings
from engine.runtimes.auditing.audit import Audit
from engine.runtimes.environments.cache import CacheLimits
from engine.runtimes.environments.environments import ScriptEnvironments
from engine.runtimes.environments.execution import Executor
from engine.runtimes.environments.indexes import Index, Indexes, Installer
from engine.runtimes.environments.network import Network, through
from engine.runtimes.environments.programs import Programs
from engine.runtimes.process.processes import Launcher
from engine.runtimes.sandbox.egress import Egress
from engine.runtimes.sandbox.package_indexes import PackageIndexes
from engine.runtimes.sandbox.sandbox import Sandbox
from engine.runtimes.scripts.accounts import ScriptAccounts
from engine.runtimes.scripts.service import ScriptService
from toolagent.contracts.sandbox import SandboxPolicy
from toolagent.contracts.sources import ScriptLanguage
from workers.settings.environment import environment
from workers.settings.front import LimitSettings
from workers.settings.tools import EnvironmentSettings
from workers.state.directory import StateDirectory

_PYTHON_INDEX = ("UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_STRATEGY")
_MEANS = {
    "UV_DEFAULT_INDEX": {"UV_DEFAULT_INDEX", "UV_INDEX_URL"},
    "UV_INDEX": {"UV_INDEX", "UV_EXTRA_INDEX_URL"},
    "npm_config_registry": {"npm_config_registry", "NPM_CONFIG_REGISTRY"},
}
_NPM_INDEX = ("npm_config_registry", "NPM_CONFIG_REGISTRY")
_ASKING = ("HOME", "UV_CONFIG_FILE", "UV_OFFLINE", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "NPM_CONFIG_USERCONFIG", "XDG_CONFIG_HOME")


@dataclass(frozen=True, slots=True)
class Tooling:
    """Installs and executes programs in the sandbox of this host. `network` leads to the hosts that a box names."""

    programs: Programs
    indexes: Indexes
    executor: Executor
    installer: Installer
    network: Network


def tooling_of(
    settings: EnvironmentSettings, start_timeout_s: float, launcher: Launcher, sandbox: Sandbox | str, egress: Egress
) -> Tooling:
    """`sandbox` is that of this host, or the reason why there is none."""
    programs = programs_of(settings)
    indexes = indexes_of(programs, environment())
    is_apart = isinstance(sandbox, str) or sandbox.level.has_own_network
    installer = Installer(indexes, through(egress, trusted=True, is_apart=is_apart), start_timeout_s)
    return Tooling(programs, indexes, Executor(launcher, sandbox), installer, through(egress, is_apart=is_apart))


def script_service(
    settings: EnvironmentSettings, limits: LimitSettings, root: Path, state: StateDirectory, tooling: Tooling, audit: Audit, judge: Judge
) -> ScriptService:
    """`root` is the folder of the scripts that calls may name."""
    accounts = ScriptAccounts(audit, state.host)
    folder = (settings.environments_dir or state.root / "environments").absolute()
    cache = CacheLimits(settings.environments_max_bytes, settings.environments_idle_hours * 3600)
    environments = ScriptEnvironments(folder, tooling.executor, tooling.programs, tooling.installer, accounts.installed, judge, cache)
    return ScriptService(
        root.absolute(),
        state.tools,
        tooling.executor,
        environments,
        variables=environment(),
        network=tooling.network,
        max_input_bytes=limits.max_params_bytes,
        max_result_values=limits.max_result_values,
        note=accounts.ran,
    )


@asynccontextmanager
async def judging(policy: SandboxPolicy, programs: Programs, launcher: Launcher, audit: Audit, host: str) -> AsyncGenerator[Judge]:
    """Judges dependencies with known vulnerabilities by the policy, until the block ends."""
    everything = environment()
    seen = {name: everything[name] for name in (*_ASKING, *_PYTHON_INDEX) if name in everything}
    advisories = Advisories.of_uv(launcher, str(programs.uv.file), seen)
    warnings = AdvisoryWarnings(advisories, audit, host)
    try:
        yield {"ignore": unjudged, "warn": warnings.judge, "refuse": refusing(advisories)}[policy.vulnerable_dependencies]
    finally:
        await warnings.close()


def programs_of(settings: EnvironmentSettings) -> Programs:
    """The programs of this machine, or those that settings name."""
    return Programs.found(
        Path(uv.find_uv_bin()),
        node=settings.node_binary,
        bun=settings.bun_binary,
        pythons=settings.pythons,
        path=environment().get("PATH"),
    )


def indexes_of(programs: Programs, variables: Mapping[str, str]) -> Indexes:
    """The indexes that uv and npm use on this machine. The sandbox sees their addresses, not their files."""
    node = programs.node.file if programs.node else None
    path = f"{node.parent}:{variables.get('PATH', '')}" if node else variables.get("PATH", "")
    seen = {name: variables[name] for name in (*_ASKING, *_PYTHON_INDEX, *_NPM_INDEX) if name in variables} | {"PATH": path}
    asked = PackageIndexes(
        str(programs.uv.file), seen, str(programs.npm) if programs.npm else None, str(programs.bun.file) if programs.bun else None
    )

    async def indexes(language: ScriptLanguage) -> Index:
        is_python = language is ScriptLanguage.PYTHON
        hosts, effective = await asked.of("python" if is_python else "javascript")
        return Index(hosts, _told(variables, effective, _PYTHON_INDEX if is_python else _NPM_INDEX))

    return indexes


def _told(variables: Mapping[str, str], effective: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """The variables of this machine. The settings of files are added as variables, if no variable means the same."""
    own = {name: variables[name] for name in names if name in variables}
    return {name: value for name, value in effective.items() if not own.keys() & _MEANS.get(name, {name})} | own
