"""A real script service on a folder of the test."""

import asyncio
import os
import textwrap
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
import uv
from pydantic import JsonValue

from engine.runtimes.auditing.advisories import Judge, unjudged
from engine.runtimes.environments.environments import Installed, ScriptEnvironments
from engine.runtimes.environments.execution import Executor
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.environments.indexes import Index, Installer
from engine.runtimes.environments.programs import Programs
from engine.runtimes.process.box import Network, no_network
from engine.runtimes.process.ownership import MARK, Owner
from engine.runtimes.process.processes import Launcher
from engine.runtimes.sandbox.identity import PAYLOAD
from engine.runtimes.sandbox.levels.bubblewrap import Bubblewrap
from engine.runtimes.sandbox.sandbox import Sandbox
from engine.runtimes.scripts.commands import Prepared, ScriptCall
from engine.runtimes.scripts.service import ScriptRun, ScriptService
from engine.runtimes.scripts.verdicts import ScriptReply
from tests.parts import bubblewrap, launching
from toolagent.contracts.manifest import SecurityContext
from toolagent.contracts.sandbox import SandboxAccount, SandboxLimits, SandboxPolicy
from toolagent.contracts.sources import ScriptLanguage

MIB = 1024 * 1024
IDENTITY = PAYLOAD if os.geteuid() == 0 else None
BARE = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
"""What a worker has at least: scripts need no more."""

POLICY = SandboxPolicy(
    defaults=SandboxLimits(
        memory_bytes=256 * MIB,
        cpus=1,
        processes=32,
        open_files=256,
        file_bytes=16 * MIB,
        disk_bytes=32 * MIB,
        output_bytes=1 * MIB,
        wall_s=30,
    )
)


async def no_index(_: ScriptLanguage) -> Index:
    return Index()


def silent(_: str) -> None: ...


@dataclass
class Scripts:
    """`runs` and `installs` are what the service recorded."""

    root: Path
    state: Path
    service: ScriptService
    environments: ScriptEnvironments
    owner: Owner
    level: Bubblewrap
    launcher: Launcher
    runs: list[ScriptRun] = field(default_factory=list[ScriptRun])
    installs: list[Installed] = field(default_factory=list[Installed])
    told: list[str] = field(default_factory=list[str])

    def write(self, path: str, text: str) -> str:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
        file.chmod(0o644)
        return path

    async def prepare(self, path: str, language: ScriptLanguage = ScriptLanguage.PYTHON) -> Prepared:
        return await self.service.prepare(self.root, path, language, "tool", self.told.append)

    async def run(
        self,
        path: str,
        params: dict[str, JsonValue] | None = None,
        *,
        language: ScriptLanguage = ScriptLanguage.PYTHON,
        wall_s: float = 30.0,
        entry_point: str | None = None,
        own: str = "tool",
        **security: JsonValue,
    ) -> ScriptReply:
        prepared = await self.prepare(path, language)
        call = ScriptCall(
            "tool", "call-12345678", own, params or {}, wall_s, SecurityContext.model_validate(security), entry_point=entry_point
        )
        return await self.service.execute(prepared, call, self.told.append)

    async def code(self, text: str, params: dict[str, JsonValue] | None = None, **more: Any) -> JsonValue:
        """The answer of a Python script with this text."""
        return (await self.run(self.write("code/main.py", text), params, **more)).output

    async def failing(self, text: str, **more: Any) -> ScriptFailure:
        with pytest.raises(ScriptFailure) as caught:
            await self.code(text, **more)
        return caught.value

    async def refused(self, path: str) -> ScriptErrorKind:
        with pytest.raises(ScriptFailure) as caught:
            await self.run(path)
        assert self.runs == []
        return caught.value.kind

    @property
    def account(self) -> SandboxAccount:
        """The sandbox account of the last run."""
        account = self.runs[-1].account
        assert account is not None
        return account

    def leftovers(self) -> list[str]:
        """Processes and control groups of this worker that exist although no call runs."""
        mine = [f"process {process.pid} {process.name()}" for process in psutil.process_iter() if _variable(process) == self.owner.mark]
        guardians = [line for line in mine if "python" in line]
        return [line for line in mine if line not in guardians] + groups_of(self.owner.mark)


def groups_of(mark: str) -> list[str]:
    """Control groups of the worker with this mark; those of others change meanwhile."""
    found = os.walk("/sys/fs/cgroup")
    return [f"{inside}/{name}" for inside, folders, _ in found for name in folders if name.startswith(f"{mark}.")]


def _variable(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(MARK)
    except (psutil.Error, OSError):
        return None


@asynccontextmanager
async def script_service(
    state: Path,
    root: Path,
    environments: Path,
    *,
    installer: Installer | None = None,
    network: Network = no_network,
    policy: SandboxPolicy = POLICY,
    programs: Programs | None = None,
    judge: Judge = unjudged,
    variables: Sequence[tuple[str, str]] = (),
) -> AsyncGenerator[Scripts]:
    await asyncio.to_thread(state.mkdir, parents=True, exist_ok=True)
    with launching(state) as launcher:
        owner, level = Owner.of_this_process(state), bubblewrap(state)
        sandbox = await Sandbox.choose([level], policy, launcher, state / "probe")
        executor = Executor(launcher, sandbox)
        runs, installs = list[ScriptRun](), list[Installed]()
        made = ScriptEnvironments(
            environments,
            executor,
            programs or Programs.found(Path(uv.find_uv_bin())),
            installer or Installer(no_index),
            installs.append,
            judge,
        )
        service = ScriptService(
            root, state / "tools", executor, made, variables=dict(variables), network=network, note=runs.append, max_input_bytes=MIB
        )
        yield Scripts(root, state, service, made, owner, level, launcher, runs, installs)
