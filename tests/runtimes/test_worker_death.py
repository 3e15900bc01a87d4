"""No process outlives a worker, however it dies; the rest is removed at the next start."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import MARK, Owner
from engine.runtimes.process.sweep import sweep
from engine.runtimes.sandbox.egress import Egress
from tests.parts import bubblewrap
from tests.runtimes.conftest import eventually, is_gone, leftovers
from tests.runtimes.workers import start_worker

SLEEPER = [sys.executable, "-c", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()"]


async def removed_by_a_start(state: Path) -> None:
    """Remove as the start of a worker does."""
    assert await sweep(state) == ()
    await bubblewrap(state).sweep()
    Egress(state).sweep()


@pytest.mark.parametrize("setpriv", [shutil.which("setpriv"), None], ids=["with setpriv", "with the guardian alone"])
@pytest.mark.promise("nothing-is-left-over")
async def test_nothing_outlives_a_killed_worker(state: Path, environments_folder: Path, setpriv: str | None) -> None:
    worker, told = await start_worker(state, environments_folder, setpriv)
    owner = Owner(Owner.state_of(state), worker.pid, psutil.Process(worker.pid).create_time())
    assert not any(map(is_gone, told.pids.values()))
    assert len(told.pids) >= 6  # the guardian, two of the sandbox, the tool, its child, its daemon
    assert leftovers(state, owner)
    worker.kill()
    worker.wait()
    await eventually(lambda: all(map(is_gone, told.pids.values())))
    await removed_by_a_start(state)
    assert leftovers(state, owner) == []


async def test_nothing_outlives_a_worker_whose_guardian_was_killed_before(state: Path, environments_folder: Path) -> None:
    worker, told = await start_worker(state, environments_folder, None)
    owner = Owner(Owner.state_of(state), worker.pid, psutil.Process(worker.pid).create_time())
    assert await sweep(state) == ()  # its worker lives
    # Stopped first, so that it cannot start a guardian anew.
    worker.send_signal(signal.SIGSTOP)
    os.kill(told.pids["guardian"], signal.SIGKILL)
    await eventually(lambda: is_gone(told.pids["guardian"]))
    worker.kill()
    worker.wait()
    await eventually(lambda: all(map(is_gone, told.pids.values())))
    await removed_by_a_start(state)
    assert leftovers(state, owner) == []


def start_sleeper(environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    sleeper = subprocess.Popen(SLEEPER, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment)
    assert sleeper.stdout is not None
    assert sleeper.stdout.readline() == "up\n"
    return sleeper


def end(sleeper: subprocess.Popen[str]) -> int:
    sleeper.kill()
    with sleeper:
        return sleeper.wait(10)


def test_a_guardian_that_closes_ends_what_it_watches_and_nothing_else() -> None:
    guardian = Guardian()
    guardian.start()
    watched, released = start_sleeper(), start_sleeper()
    guardian.watch(watched.pid)
    guardian.watch(released.pid)
    guardian.release(released.pid)
    guardian.close()
    with watched:
        assert watched.wait(10) == -signal.SIGKILL
    assert psutil.Process(released.pid).is_running()
    end(released)


def test_a_guardian_that_was_killed_is_replaced_and_knows_everything() -> None:
    guardian = Guardian()
    guardian.start()
    first, second = start_sleeper(), start_sleeper()
    guardian.watch(first.pid)
    assert guardian.pid is not None
    psutil.Process(guardian.pid).kill()
    psutil.Process(guardian.pid).wait(10)
    guardian.watch(second.pid)
    guardian.close()
    for sleeper in (first, second):
        with sleeper:
            assert sleeper.wait(10) == -signal.SIGKILL


def test_a_guardian_survives_the_signals_of_a_terminal() -> None:
    with Guardian() as guardian:
        assert guardian.pid is not None
        before, process = guardian.pid, psutil.Process(guardian.pid)
        sleeper = start_sleeper()
        guardian.watch(sleeper.pid)
        while "SIG_IGN" not in _ignored(process.pid):
            pass
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(before, number)
        guardian.release(sleeper.pid)
        end(sleeper)
        assert guardian.pid == before
        assert process.is_running()


def _ignored(pid: int) -> str:
    """`SIG_IGN` once the guardian ignores signals."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigIgn:"))
    return "SIG_IGN" if int(line.split()[1], 16) & (1 << (signal.SIGTERM - 1)) else ""


async def test_a_stranger_is_not_swept(state: Path) -> None:
    mine = Owner.of_this_process(state)
    # A worker with my pid that had started at another time: it is dead, although the pid lives.
    dead = Owner(mine.state, mine.pid, mine.created - 3600)
    stranger, living, left = start_sleeper({"PATH": "/usr/bin"}), start_sleeper(mine.environment), start_sleeper(dead.environment)
    try:
        assert {one.pid for one in await sweep(state)} == {left.pid}
        assert psutil.Process(stranger.pid).is_running()
        assert psutil.Process(living.pid).is_running()
    finally:
        codes = [end(stranger), end(living), end(left)]
    assert codes == [-signal.SIGKILL] * 3


def test_a_mark_that_is_none_names_no_owner() -> None:
    assert [Owner.read(mark) for mark in ("", "x", "x:y:z", "x:1")] == [None] * 4
    owner = Owner("abc", 12, 1.5)
    assert Owner.read(owner.environment[MARK]) == owner
