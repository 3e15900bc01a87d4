"""A hundred calls, sixteen concurrently, leave no process, file, control group or socket; nor does a killed worker."""

import asyncio
import signal
from pathlib import Path

import psutil
import pytest

from engine.runtimes.process.ownership import MARK, Owner
from engine.runtimes.process.sweep import sweep
from tests.copies import start_copy
from tests.parts import bubblewrap
from tests.scripts.harness import BARE, Scripts, groups_of

QUICK = """
import json, subprocess, sys
open('/tmp/x', 'w').write('x')
subprocess.Popen(['/bin/sleep', '100'])
json.dump(json.load(sys.stdin), sys.stdout)
"""
BUSY = "import subprocess, time\nsubprocess.Popen(['/bin/sleep', '100'])\ntime.sleep(0.5)\nprint(1)\n"
DAEMONS = "import os, time\nfor _ in range(3):\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(100)\n"


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("many", [32, pytest.param(100, marks=pytest.mark.long)])
async def test_many_calls_at_sixteen_at_once_leave_nothing(scripts: Scripts, many: int) -> None:
    scripts.write("busy.py", QUICK)
    await scripts.run("busy.py")
    before, descriptors = files_below(scripts.state), open_files()
    places = asyncio.Semaphore(16)

    async def one(number: int) -> object:
        async with places:
            return (await scripts.run("busy.py", {"number": number})).output

    outputs = await asyncio.gather(*[one(number) for number in range(many)])
    assert outputs == [{"number": number} for number in range(many)]
    assert (scripts.leftovers(), files_below(scripts.state) - before) == ([], set())
    assert open_files() <= descriptors + 1  # the event loop's own, made on demand


@pytest.mark.timeout(300)
async def test_a_worker_killed_in_the_middle_leaves_nothing(tmp_path: Path, root: Path, environments_folder: Path) -> None:
    state = tmp_path / "state"
    (root / "busy.py").write_text(DAEMONS + BUSY)
    worker, said = start_copy("tests.scripts.programs.worker", str(state), str(root), str(environments_folder), variables=BARE)
    for _ in range(5):
        assert await asyncio.to_thread(said.readline)
    mark = _mark_of(worker.pid, state)
    running = _marked(mark)
    inside = {child.pid for pid in running for child in _children(pid)}
    assert inside - running, "some scripts should be at work"
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    said.close()
    async with asyncio.timeout(60):
        # Also those that were being launched at that moment.
        while any(map(_lives, running | inside)) or _marked(mark):  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(0.05)
    # What only a start can remove: the control groups of the dead.
    assert await sweep(state) == ()
    await bubblewrap(state).sweep()
    assert groups_of(mark) == []
    assert [path for path in state.rglob("*") if path.is_socket()] == []
    assert {path.name for path in (state / "tools").rglob("*") if path.is_file()} <= {"last_run.log"}


def _mark_of(pid: int, state: Path) -> str:
    return Owner(Owner.state_of(state), pid, psutil.Process(pid).create_time()).mark


def _marked(mark: str) -> set[int]:
    return {process.pid for process in psutil.process_iter() if _has(process, mark)}


def _has(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(MARK) == mark
    except (psutil.Error, OSError):
        return False


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
