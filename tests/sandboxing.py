"""A real sandbox for tests that start tools."""

from pathlib import Path

import uv

from engine.runtimes.auditing.audit import Audit, NoAudit
from engine.runtimes.environments.environments import ScriptEnvironments
from engine.runtimes.environments.execution import Executor
from engine.runtimes.environments.indexes import Installer
from engine.runtimes.environments.network import through
from engine.runtimes.environments.programs import Programs
from engine.runtimes.local.boxed_runs import Sandboxing
from engine.runtimes.process.ownership import Owner
from engine.runtimes.process.processes import Launcher
from engine.runtimes.sandbox.egress import Egress
from engine.runtimes.sandbox.levels.bubblewrap import Bubblewrap
from engine.runtimes.sandbox.levels.cgroups import Cgroups
from engine.runtimes.sandbox.sandbox import Sandbox
from toolagent.contracts.sandbox import SandboxPolicy
from workers.host.sandbox import identities
from workers.host.scripts import indexes_of
from workers.settings.environment import environment

__all__ = ["sandboxing"]

_VARIABLES = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC"}


def sandboxing(
    state: Path,
    launcher: Launcher,
    environments: Path,
    policy: SandboxPolicy | None = None,
    *,
    uv_binary: str | None = None,
    audit: Audit | None = None,
) -> Sandboxing:
    """By bubblewrap; `environments` is where those of tools are kept."""
    owner = Owner.of_this_process(state)
    policy = policy or SandboxPolicy()
    sandbox = Sandbox(Bubblewrap(state / "sandbox" / "etc", Cgroups(owner), identities()), policy)
    egress = Egress(state, policy.private_hosts)
    programs = Programs.found(Path(uv_binary or uv.find_uv_bin()))
    installer = Installer(indexes_of(programs, environment()), through(egress, trusted=True))
    kept = ScriptEnvironments(environments, Executor(launcher, sandbox), programs, installer)
    return Sandboxing(sandbox, egress, kept, _VARIABLES, audit or NoAudit())
