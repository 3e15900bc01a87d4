"""Runs a task's programs in the sandbox, with their mounts and limits."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.making.boxes import boxed, run_with_index
from engine.making.uv.interpreters import Interpreters
from engine.runtimes.environments.execution import Execution, Executor
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.environments.indexes import Index, Installer
from engine.runtimes.environments.programs import Programs
from engine.runtimes.process.box import Box, Ending, LevelUnavailable, Mount
from engine.runtimes.process.launching import launched
from engine.runtimes.process.output import Output
from engine.runtimes.process.processes import Launcher, Process
from engine.runtimes.sandbox.package_indexes import IndexesUnknown
from toolagent.contracts.sandbox import SandboxLimits
from toolagent.contracts.sources import ScriptLanguage

_MIB = 1024 * 1024
_LIMITS = SandboxLimits(
    memory_bytes=2048 * _MIB, cpus=2, processes=256, open_files=4096, file_bytes=1024 * _MIB, disk_bytes=4096 * _MIB,
    output_bytes=8 * _MIB, wall_s=86_400,
)  # fmt: skip
_VARIABLES = {
    "HOME": "/tmp",  # noqa: S108 - the sandbox's own
    "PYTHONUTF8": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "UV_NO_PROGRESS": "1",
    "UV_PYTHON_DOWNLOADS": "never",
    "UV_CACHE_DIR": "/tmp/uv",  # noqa: S108 - the sandbox's own
    "UV_LINK_MODE": "copy",
    "DO_NOT_TRACK": "1",
}
_LOG_BYTES = 8 * _MIB

UV = Path("/programs/uv")
"""Where programs see uv, wherever it is on this host."""


@dataclass(frozen=True, slots=True)
class Run:
    """`folder` and the targets of mounts are paths that the program sees. `reaches_index`: it can reach only the package index."""

    argv: Sequence[str]
    folder: Path
    wall_s: float
    mounts: tuple[Mount, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    reaches_index: bool = False


class BenchParts:
    """Parts that all workbenches of a host share."""

    def __init__(self, launcher: Launcher, executor: Executor, programs: Programs, installer: Installer) -> None:
        self._launcher, self.executor, self.installer = launcher, executor, installer
        self.programs = programs
        self.interpreters = Interpreters(executor, programs)

    async def run(self, name: str, run: Run, logs: Path) -> Execution:
        """Runs a program until it ends, is out of time or is cancelled. Hides the index's password in its output. Raises ScriptFailure."""
        index = await self.index() if run.reaches_index else Index()
        box = self._box(name, run, index)
        done = await run_with_index(self.executor, self.installer, box, run.argv, index, run.wall_s, logs)
        return done.without(index.passwords)

    async def start(self, name: str, run: Run, log: Path) -> Process:
        """Starts a background program; its output goes to a rotated file. Raises ScriptFailure."""
        box, logs = self._box(name, run, Index()), log.with_suffix(".run")
        try:
            await asyncio.to_thread(logs.mkdir, parents=True, exist_ok=True)
            prepared = await self.executor.sandbox.level.prepare(run.argv, box)
            streams = Output(log, _LOG_BYTES), Output(logs / "stderr.log", _LOG_BYTES)
            return await launched(self._launcher.launch_boxed(prepared, run.argv, logs=logs, stdin=b"", streams=streams), Process.kill)
        except (LevelUnavailable, OSError) as error:
            raise ScriptFailure(ScriptErrorKind.UNAVAILABLE, f"The sandbox could not be set up: {error}") from error

    async def index(self) -> Index:
        """Raises ScriptFailure (`UnavailableError`)."""
        try:
            return await self.installer.indexes(ScriptLanguage.PYTHON)
        except IndexesUnknown as error:
            # uv's message may hold an address.
            raise ScriptFailure(ScriptErrorKind.UNAVAILABLE, "It is not known which package index is used here.") from error

    def _box(self, name: str, run: Run, index: Index) -> Box:
        mounts = (*self.programs.python.mounts, Mount(self.programs.uv.file, UV), *run.mounts)
        return boxed(self.executor, name, run.folder, _LIMITS, mounts, {**index.variables, **_VARIABLES, **run.variables})


def too_much(ending: Ending) -> str:
    """The limit that a program exceeded, in a sentence; empty if none."""
    return f"It {ending.beyond}." if ending.beyond else ""
