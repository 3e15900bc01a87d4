"""The real parts of tests, assembled as a worker does."""

import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import uv

from engine.calling.exchange import Exchange
from engine.calling.fast_call import BegunCalls
from engine.calling.intake import Intake
from engine.calling.queued_call import PromptSettlement
from engine.calls.effects.ended import Places, SettledCalls, UsualDurations
from engine.calls.settlement import Settlements
from engine.calls.steps import Steps, StepTrace
from engine.registry.registry import ToolRegistry
from engine.runtimes.auditing.audit import Audit, NoAudit
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.environments.environments import ScriptEnvironments
from engine.runtimes.environments.execution import Executor
from engine.runtimes.environments.indexes import Index, Indexes, Installer
from engine.runtimes.environments.network import through
from engine.runtimes.environments.programs import Programs
from engine.runtimes.local.boxed_runs import Sandboxing
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import Owner
from engine.runtimes.process.processes import Launcher
from engine.runtimes.running.supervisor import Supervisor
from engine.runtimes.sandbox.egress import Egress
from engine.runtimes.sandbox.levels.bubblewrap import Bubblewrap
from engine.runtimes.sandbox.levels.cgroups import Cgroups
from engine.runtimes.sandbox.sandbox import Sandbox
from engine.store.calls import CallTable
from engine.store.database import Database
from engine.store.lost_steps import LostStepTable
from engine.store.routes import RouteTable
from engine.store.tools import ToolTable
from toolagent.contracts.sandbox import SandboxPolicy
from toolagent.contracts.sources import ScriptLanguage
from workers.grace import Grace
from workers.host.sandbox import identities
from workers.host.scripts import indexes_of
from workers.settings.environment import environment

__all__ = [
    "begun_calls",
    "bubblewrap",
    "container_parts",
    "installer_of",
    "launching",
    "machine_indexes",
    "prompt_settlement",
    "sandboxing",
    "tool_registry",
]

_VARIABLES = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC"}
_OF_INSTALLERS = ("HOME", "UV_", "NPM_", "npm_")
"""What variables begin with that say where packages come from."""

_TOLD: dict[object, Index] = {}


def tool_registry(database: Database) -> ToolRegistry:
    return ToolRegistry(ToolTable(database), RouteTable(database))


def prompt_settlement(registry: ToolRegistry, calls: CallTable, database: Database, trace: Path) -> PromptSettlement:
    return PromptSettlement(Settlements(registry, Places(calls, SettledCalls())), Steps(StepTrace(trace), LostStepTable(database)))


def begun_calls(
    supervisor: Supervisor, exchange: Exchange, calls: CallTable, settlement: PromptSettlement, intake: Intake, **more: float
) -> BegunCalls:
    """The begun calls of the host `h1`, which has one slot."""
    return BegunCalls(supervisor, exchange, calls, settlement, UsualDurations(), {"default": 1}, intake, Grace(1.0), "h1", **more)


def container_parts(settings: DockerSettings, engine: Engine, **more: object) -> DockerParts:
    """Their network access is for the user of the settings."""
    return replace(DockerParts(settings, engine, Egress(settings.state, identity=settings.identity)), **more)


@contextmanager
def launching(state: Path, variables: Mapping[str, str] | None = None) -> Generator[Launcher]:
    """Starts processes on this state directory, with a guardian of its own."""
    owner = Owner.of_this_process(state)
    with Guardian(owner) as guardian:
        yield Launcher(owner, guardian, variables or {"PATH": "/usr/bin:/bin"}, shutil.which("setpriv"))


def bubblewrap(state: Path) -> Bubblewrap:
    return Bubblewrap(state / "sandbox" / "etc", Cgroups(Owner.of_this_process(state)), identities())


def installer_of(indexes: Indexes, egress: Egress, timeout_s: float = 300.0) -> Installer:
    """An installer that reaches the indexes by this egress."""
    return Installer(indexes, through(egress, trusted=True), timeout_s)


def machine_indexes(programs: Programs) -> Indexes:
    """The indexes of uv and npm on this machine, read once for all tests, because npm takes a second of processor time."""
    ask = indexes_of(programs, environment())
    variables = tuple((name, value) for name, value in sorted(environment().items()) if name.startswith(_OF_INSTALLERS))

    async def told(language: ScriptLanguage) -> Index:
        key = (language, programs.uv, programs.npm, programs.bun, variables)
        if key not in _TOLD:
            _TOLD[key] = await ask(language)
        return _TOLD[key]

    return told


def sandboxing(
    state: Path,
    launcher: Launcher,
    environments: Path,
    policy: SandboxPolicy | None = None,
    *,
    uv_binary: str | None = None,
    audit: Audit | None = None,
) -> Sandboxing:
    """A sandbox by bubblewrap; `environments` is the folder of the environments of tools."""
    policy = policy or SandboxPolicy()
    sandbox = Sandbox(bubblewrap(state), policy)
    egress = Egress(state, policy.private_hosts)
    programs = Programs.found(Path(uv_binary or uv.find_uv_bin()))
    installer = installer_of(machine_indexes(programs), egress)
    kept = ScriptEnvironments(environments, Executor(launcher, sandbox), programs, installer)
    return Sandboxing(sandbox, egress, kept, _VARIABLES, audit or NoAudit())
