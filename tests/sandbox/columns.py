"""The configurations of every attempt: sandbox level and worker's user."""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.programs import start_program
from tests.sandbox.abuse import MARK, Verdict
from toolagent.contracts.sandbox import SandboxLevel

__all__ = ["COLUMNS", "CONTROL", "Column", "verdicts"]

_ROOT = Path(__file__).parents[2]
_OPENED = Path(__file__).with_name("opened.sh")
_ENGINE = Path("/var/run/docker.sock")
_GROUPS = 0o060
_ORDINARY = 12_345
_WITHIN_S = 900


@dataclass(frozen=True, slots=True)
class Column:
    """`uid`: the worker's user. `holds`: every attempt must fail. Without a level there is no sandbox."""

    title: str
    level: SandboxLevel | None
    uid: int
    holds: bool

    @property
    def lacks(self) -> str | None:
        """Why it cannot be tried here; starts an engine if needed."""
        if self.uid == 0 and os.geteuid() != 0:
            return "Only root can try what happens when the worker is root."
        if self.level is SandboxLevel.DOCKER and self.uid != 0 and not _engine_is_open():
            return f"An ordinary user may not use the Docker engine here: {_ENGINE} is open neither to it nor to a group."
        return None

    def command(self, folder: Path, together: int, names: Sequence[str]) -> list[str]:
        level = self.level.value if self.level else "none"
        run = [sys.executable, "-m", "tests.sandbox.running", level, str(folder), str(together), *names]
        if os.geteuid() != 0 or (self.uid == 0 and self.level is not SandboxLevel.RLIMITS):
            return run
        places = dict.fromkeys((sys.base_prefix, sys.prefix, str(_ROOT)))
        # As people do who use an engine: they are in the group that its socket belongs to.
        user = f"{self.uid},{_ENGINE.stat().st_gid}" if self.level is SandboxLevel.DOCKER else str(self.uid)
        return ["/usr/bin/unshare", "--mount", "--", "/bin/bash", str(_OPENED), user, *places, "--", *run]


COLUMNS: Mapping[str, Column] = {
    "docker-root": Column("docker (worker is root)", SandboxLevel.DOCKER, 0, holds=True),
    "docker-user": Column("docker (ordinary user)", SandboxLevel.DOCKER, _ORDINARY, holds=True),
    "bubblewrap-root": Column("bubblewrap (worker is root)", SandboxLevel.BUBBLEWRAP, 0, holds=True),
    "bubblewrap-user": Column("bubblewrap (ordinary user)", SandboxLevel.BUBBLEWRAP, _ORDINARY, holds=True),
    "rlimits-root": Column("rlimits (worker is root)", SandboxLevel.RLIMITS, 0, holds=False),
    "rlimits-user": Column("rlimits (ordinary user)", SandboxLevel.RLIMITS, _ORDINARY, holds=False),
}
CONTROL = Column("no sandbox (ordinary user)", None, _ORDINARY, holds=False)
"""What fails here too tells nothing about a sandbox; what does harm is not made."""


def _engine_is_open() -> bool:
    if os.geteuid() != 0:
        return os.access(_ENGINE, os.R_OK | os.W_OK)
    return _ENGINE.is_socket() and _ENGINE.stat().st_mode & _GROUPS == _GROUPS


async def verdicts(column: Column, names: Sequence[str] = (), *, together: int = 1) -> Mapping[str, Verdict]:
    """The verdicts of these attempts, or of all, this many of them in one sandbox. Raises RuntimeError if they could not be made."""
    async with _folder(column) as folder:
        process = await start_program(
            *column.command(folder, together, names),
            cwd=_ROOT,
            env=_environment(folder),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(_WITHIN_S):
                out, err = await process.communicate()
        finally:
            if process.returncode is None:
                os.killpg(process.pid, 9)
                await process.wait()
    if process.returncode != 0:
        raise RuntimeError(f"{column.title}: exit code {process.returncode}: {err.decode()[-3000:]}")
    lines = [json.loads(line) for line in out.decode().splitlines()]
    return {line["name"]: Verdict(line["held"], line["by"]) for line in lines}


@asynccontextmanager
async def _folder(column: Column) -> AsyncGenerator[Path]:
    """A folder that all users can reach, with a path short enough for sockets."""
    folder = await asyncio.to_thread(_made, column)
    try:
        yield folder
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _made(column: Column) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="ta-"))
    folder.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(folder, column.uid, column.uid)
    return folder


def _environment(folder: Path) -> dict[str, str]:
    """A worker's environment, with a secret in it."""
    paths = [*(str(_ROOT / "packages" / name / "src") for name in ("toolagent", "service")), str(_ROOT)]
    return {
        "PATH": os.defpath,
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SECRET": f"{MARK}of-the-worker",
    }
