"""A real sandbox for tests that start tools."""

from pathlib import Path

import uv

from engine.runtimes.audit import Audit, NoAudit
from engine.runtimes.boxed_runs import Sandboxing
from engine.runtimes.ownership import Owner
from engine.runtimes.processes import Launcher
from engine.runtimes.sandbox.bubblewrap import Bubblewrap
from engine.runtimes.sandbox.cgroups import Cgroups
from engine.runtimes.sandbox.egress import Egress
from engine.runtimes.sandbox.sandbox import Sandbox
from engine.runtimes.scripts.environments import Installer, ScriptEnvironments
from engine.runtimes.scripts.execution import Executor
from engine.runtimes.scripts.network import through
from engine.runtimes.scripts.programs import Programs
from toolagent.contracts.sandbox import SandboxPolicy
from workers.sandbox import identities
from workers.scripts import indexes_of
from workers.settings import environment

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
