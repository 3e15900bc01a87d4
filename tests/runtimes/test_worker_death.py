"""Nothing outlives a worker, however it dies; what did all the same is swept at the next start."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import uv

from engine.runtimes.guardian import Guardian
from engine.runtimes.ownership import MARK, Owner
from engine.runtimes.sweep import sweep
from tests.runtimes.conftest import eventually, is_gone

ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).parent / "programs/worker.py"
SLEEPER = [sys.executable, "-c", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()"]


async def start_worker(state: Path, environments: Path, setpriv: str | None) -> tuple[asyncio.subprocess.Process, dict[str, int]]:
    worker = await asyncio.create_subprocess_exec(
        sys.executable,
        str(WORKER),
        str(state),
        str(environments),
        uv.find_uv_bin(),
        setpriv or "",
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},  # noqa: TID251 - a child of a test
        stdout=asyncio.subprocess.PIPE,
    )
    assert worker.stdout is not None
    return worker, json.loads(await asyncio.wait_for(worker.stdout.readline(), 60))


@pytest.mark.parametrize("setpriv", [shutil.which("setpriv"), None], ids=["with setpriv", "with the guardian alone"])
@pytest.mark.promise("nothing-is-left-over")
async def test_nothing_outlives_a_killed_worker(state: Path, environments_folder: Path, setpriv: str | None) -> None:
    worker, pids = await start_worker(state, environments_folder, setpriv)
    assert {name for name, pid in pids.items() if not is_gone(pid)} == {"guardian", "tool", "child", "daemon"}
    worker.kill()
    await worker.wait()
    await eventually(lambda: all(map(is_gone, pids.values())))


async def test_what_outlives_the_guardian_is_swept(state: Path, environments_folder: Path) -> None:
    worker, pids = await start_worker(state, environments_folder, None)
    assert await sweep(state) == ()  # its worker lives
    # Stopped first, so that it cannot start a guardian anew.
    worker.send_signal(signal.SIGSTOP)
    os.kill(pids["guardian"], signal.SIGKILL)
    await eventually(lambda: is_gone(pids["guardian"]))
    worker.kill()
    await worker.wait()
    left = {pids["tool"], pids["child"], pids["daemon"]}
    assert not any(map(is_gone, left))
    assert await sweep(state / "elsewhere") == ()
    swept = await sweep(state)
    assert ({one.pid for one in swept}, {one.worker for one in swept}) == (left, {worker.pid})
    assert all(map(is_gone, left))


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
    """`SIG_IGN` once the guardian has come as far as ignoring signals."""
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
