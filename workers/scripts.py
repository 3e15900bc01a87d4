"""What executes scripts on this host, made from settings."""

from collections.abc import Mapping
from pathlib import Path

import uv

from engine.runtimes.advisories import Advisories, judged_by
from engine.runtimes.audit import Audit
from engine.runtimes.processes import Launcher
from engine.runtimes.sandbox.egress import Egress
from engine.runtimes.sandbox.package_indexes import PackageIndexes
from engine.runtimes.sandbox.sandbox import Sandbox
from engine.runtimes.scripts.accounts import ScriptAccounts
from engine.runtimes.scripts.environments import Index, Indexes, Installer, ScriptEnvironments
from engine.runtimes.scripts.execution import Executor
from engine.runtimes.scripts.network import no_network, through
from engine.runtimes.scripts.programs import Programs
from engine.runtimes.scripts.service import ScriptService
from toolagent.contracts.sources import ScriptLanguage
from workers.sandbox import policy_of
from workers.settings import Settings, environment
from workers.state import StateDirectory

__all__ = ["script_service"]

_PYTHON_INDEX = ("UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_STRATEGY")
_NPM_INDEX = ("npm_config_registry", "NPM_CONFIG_REGISTRY")
_ASKING = ("HOME", "UV_CONFIG_FILE", "UV_OFFLINE", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "NPM_CONFIG_USERCONFIG", "XDG_CONFIG_HOME")


def script_service(
    settings: Settings, state: StateDirectory, launcher: Launcher, sandbox: Sandbox | str, egress: Egress | None, audit: Audit
) -> ScriptService:
    """`sandbox` is the one of this host, or why there is none. Without `egress` scripts and installations have no network."""
    everything = environment()
    programs = Programs.found(Path(uv.find_uv_bin()), node=settings.node_binary, bun=settings.bun_binary, path=everything.get("PATH"))
    executor = Executor(launcher, sandbox)
    accounts = ScriptAccounts(audit, state.host)
    is_apart = isinstance(sandbox, str) or sandbox.level.has_own_network
    installing = through(egress, trusted=True, is_apart=is_apart) if egress else no_network
    installer = Installer(indexes_of(programs, everything), installing, settings.tool_start_timeout_s)
    seen = {name: everything[name] for name in (*_ASKING, *_PYTHON_INDEX) if name in everything}
    judge = judged_by(policy_of(settings).vulnerable_dependencies, Advisories.of_uv(launcher, str(programs.uv.file), seen))
    folder = (settings.environments_dir or state.root / "environments").absolute()
    environments = ScriptEnvironments(folder, executor, programs, installer, accounts.installed, judge)
    return ScriptService(
        settings.script_folder.absolute(),
        state.tools,
        executor,
        environments,
        variables=everything,
        network=through(egress, is_apart=is_apart) if egress else no_network,
        max_input_bytes=settings.max_params_bytes,
        note=accounts.ran,
    )


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
            return Index(await asked.of_python(), {name: variables[name] for name in _PYTHON_INDEX if name in variables})
        return Index(await asked.of_javascript(), {name: variables[name] for name in _NPM_INDEX if name in variables})

    return indexes
