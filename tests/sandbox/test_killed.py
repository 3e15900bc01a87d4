"""A run whose worker is killed: before its start the program never begins, afterwards it ends."""

import asyncio
import contextlib
import itertools
import os
import signal
import time
from pathlib import Path

import psutil
import pyseccomp
import pytest

from engine.runtimes.process.ownership import Owner
from engine.runtimes.sandbox.levels import confine
from engine.runtimes.sandbox.levels.bubblewrap import Bubblewrap
from engine.runtimes.sandbox.levels.cgroups import Cgroups
from engine.runtimes.sandbox.levels.rlimits import RLimits
from tests.copies import start_text
from workers.host.sandbox import identities

_PAIRS = {
    ("bubblewrap", "before", "alone"),
    ("bubblewrap", "after", "guarded"),
    ("rlimits", "before", "guarded"),
    ("rlimits", "after", "alone"),
}
"""Each two of a way meet in one of these."""
WAYS = [
    pytest.param(*way, marks=() if way in _PAIRS else pytest.mark.long)
    for way in itertools.product(("bubblewrap", "rlimits"), ("before", "after"), ("guarded", "alone"))
]
READ = pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, "read")
WORKER = """
import asyncio, os, shutil, sys
from pathlib import Path
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import Owner
from engine.runtimes.process.processes import Launcher
from engine.runtimes.process.box import Box, Mount
from engine.runtimes.sandbox.levels.bubblewrap import Bubblewrap
from engine.runtimes.sandbox.levels.cgroups import Cgroups
from engine.runtimes.sandbox.levels.rlimits import RLimits
from toolagent.contracts.sandbox import SandboxPolicy
from workers.host.sandbox import identities

async def main(kind, folder, when, guarded):
    owner = Owner.of_this_process(folder)
    cgroups = Cgroups(owner)
    level = Bubblewrap(folder / "etc", cgroups, identities()) if kind == "bubblewrap" else RLimits(folder / "r", owner, cgroups, None)
    data = folder / "data"
    data.mkdir()
    box = Box("killed", data, SandboxPolicy().defaults, (Mount(data, data, writable=True),), {"PATH": "/usr/bin:/bin"})
    text = "echo begun >begun; (setsid sleep 30" + sys.argv[5] + " &); exec sleep 30" + sys.argv[5]
    prepared = await level.prepare(["/bin/sh", "-c", text], box)
    with Guardian(owner) as guardian:
        if not guarded:
            guardian.watch = lambda pid: None
        launcher = Launcher(owner, guardian, {}, shutil.which("setpriv") if guarded else None)
        if when == "before":
            async def stuck(pid):
                print(pid, flush=True)
                await asyncio.sleep(1000)
            prepared.begin = stuck
        process = await launcher.launch_boxed(prepared, ["sh"], logs=folder / "logs")
        while not (data / "begun").exists():
            await asyncio.sleep(0.01)
        print(process.pid, flush=True)
        await process.wait()

asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4] == "guarded"))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    return tmp_path


def token() -> str:
    return str(time.monotonic_ns())


def alive(text: str) -> list[str]:
    found: list[str] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and text in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
    return found


def gone(text: str) -> list[str]:
    until = time.monotonic() + 20
    while (left := alive(text)) and time.monotonic() < until:
        time.sleep(0.05)
    return left


@pytest.mark.parametrize(("kind", "when", "guarded"), WAYS)
def test_a_killed_worker_leaves_nothing_that_runs(folder: Path, kind: str, when: str, guarded: str) -> None:
    name = token()
    worker, said = start_text(WORKER, kind, str(folder), when, guarded, name)
    with said:
        assert said.readline()
        if when == "before":
            # It has come as far as it can when it waits for its leave.
            assert _waits_at_its_gate(worker.pid)
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    assert gone(name) == []
    assert (folder / "data" / "begun").exists() is (when == "after")
    # What the kernel does not take along goes when the next worker starts.
    asyncio.run(swept(folder, Owner.of_this_process(folder)))
    left = [path for base in ("/sys/fs/cgroup", folder / "r") for path, _, _ in os.walk(base) if Owner.state_of(folder) in path]
    assert left == []


async def swept(folder: Path, owner: Owner) -> None:
    for level in (Bubblewrap(folder / "etc", Cgroups(owner), identities()), RLimits(folder / "r", owner, Cgroups(owner), None)):
        await level.sweep()


def _waits_at_its_gate(worker: int) -> bool:
    """Once a process below it reads from the pipe that lets it begin."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        for process in psutil.Process(worker).children(recursive=True):
            # Who has gone, or is not ours to look at, does not wait.
            with contextlib.suppress(psutil.Error, OSError, ValueError):
                call, first = Path(f"/proc/{process.pid}/syscall").read_text().split()[:2]
                if int(call) == READ and int(first, 16) == _gate(process.cmdline()):
                    return True
        time.sleep(0.01)
    return False


def _gate(argv: list[str]) -> int:
    """Raises ValueError if there is none."""
    words = ("--block-fd", 1) if "--block-fd" in argv else (confine.__file__, 2)
    return int(argv[argv.index(words[0]) + words[1]])
