"""Runs uv in the sandbox on the files of a repository, with access to the package index only."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.making.boxes import boxed, index_of, run_with_index
from engine.making.failures import LockFailed
from engine.making.uv.interpreters import Interpreters
from engine.runtimes.environments.c_headers import header_remedy
from engine.runtimes.environments.execution import Execution, Executor
from engine.runtimes.environments.indexes import Index, Installer
from engine.runtimes.environments.programs import Program, Programs
from engine.runtimes.process.box import Mount
from toolagent.contracts.sandbox import SandboxLimits
from toolagent.contracts.sources import ScriptLanguage

_MIB = 1024 * 1024
_TOLD = 4_000
_LIMITS = SandboxLimits(
    memory_bytes=2048 * _MIB, cpus=2, processes=256, open_files=4096, file_bytes=1024 * _MIB, disk_bytes=2048 * _MIB,
    output_bytes=4 * _MIB, wall_s=86_400,
)  # fmt: skip
WORK = "work"
"""The folder in which uv works, below the given one."""
CACHE = "cache"


class UvRuns:
    """Uses the same package index as environments."""

    def __init__(self, executor: Executor, programs: Programs, installer: Installer) -> None:
        self._executor, self.programs, self._installer = executor, programs, installer
        self._interpreters = Interpreters(executor, programs)

    @property
    def timeout_s(self) -> float:
        """Seconds that one installation may take."""
        return self._installer.timeout_s

    async def prepare(self, into: Path) -> None:
        """Fills the cache below `into`, before any program writes to it. Raises ScriptFailure."""
        await self._interpreters.put_into(into / WORK / CACHE, into / "interpreter")

    async def index(self) -> Index:
        """Raises LockFailed."""
        return await index_of(self._installer, ScriptLanguage.PYTHON)

    async def take(
        self, argv: Sequence[str], into: Path, index: Index, python: Program, what: str, variables: Mapping[str, str] | None = None
    ) -> None:
        """Runs `uv` in the folder `WORK` of `into`. Raises LockFailed, whose message begins with `what`; ScriptFailure."""
        work = into / WORK
        mounts = (*self.programs.uv.mounts, *self.programs.python.mounts, *python.mounts, Mount(work, work, writable=True))
        everything = {
            **(variables or {}),
            **index.variables,
            "HOME": str(work),
            "TMPDIR": str(work),
            "UV_CACHE_DIR": str(work / CACHE),
            "UV_NO_PROGRESS": "1",
            "UV_PYTHON_DOWNLOADS": "never",
        }
        box = boxed(self._executor, "lock", work, _LIMITS, tuple(dict.fromkeys(mounts)), everything)
        command = (str(self.programs.uv.file), *argv)
        done = await run_with_index(self._executor, self._installer, box, command, index, self.timeout_s, into / "log")
        if done.code != 0 or done.cut:
            raise _failure(done, index.passwords, what) from (TimeoutError() if done.cut == "time" else None)


def _failure(done: Execution, passwords: Sequence[str], what: str) -> LockFailed:
    told = done.without(passwords).stderr.decode(errors="replace").strip()
    if done.cut:
        return LockFailed(f"{what}: it took too long, or said too much.", told[-_TOLD:])
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    why = next((line for line in reversed(lines) if line.startswith("cause:")), lines[0] if lines else f"uv exited with code {done.code}")
    return LockFailed(f"{what}: {why[:1_000].removeprefix('cause: ')}{header_remedy(told)}", told[-_TOLD:])
