"""A worker is killed in the middle of its work on a workbench."""

import asyncio
import contextlib
import random
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from engine.making.workbench.bench import Workbenches
from engine.making.workbench.files import BenchFiles
from engine.making.workbench.places import place_of
from tests.copies import start_copy
from tests.making.workbench.conftest import TASK, bench_parts
from toolagent_service.contracts.dependency_policy import DependencyVerdict

PROGRAMS = "tests.making.workbench.programs"
FASTAPI = DependencyVerdict(requirement="fastapi", name="fastapi")
BOUND_S = 60.0


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(BOUND_S):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in other processes
            await asyncio.sleep(0.005)


@pytest.mark.promise("no-use-done-twice")
async def test_an_append_is_there_once_whenever_the_worker_was_killed(tmp_path: Path) -> None:
    for name in ("work", "logs", "uses"):
        await asyncio.to_thread((tmp_path / name).mkdir)
    files = BenchFiles(tmp_path, tmp_path / "uses")
    chance = random.Random(7)  # noqa: S311 - moments to kill at
    following = 0
    for _ in range(3):
        worker, said = start_copy(f"{PROGRAMS}.appender", str(tmp_path), str(following))
        with said:
            for _line in range(chance.randrange(3, 40)):
                assert await asyncio.to_thread(said.readline)
            await asyncio.sleep(chance.random() * 0.002)
            worker.send_signal(signal.SIGKILL)
            rest = await asyncio.to_thread(said.read)
        assert worker.wait() == -signal.SIGKILL
        begun = [int(line) for line in rest.split()]
        # The use it was at is tried again, as Temporal does; so is one that was done, whose end nobody heard of.
        last = begun[-1] if begun else int(files.text(place_of("log.txt")).split()[-1])
        for number in (last - 1, last):
            files.write(place_of("log.txt"), f"{number}\n", "append", f"use {number}")
        following = last + 1
    assert files.text(place_of("log.txt")) == "".join(f"{number}\n" for number in range(following))


async def test_an_installation_that_was_killed_leaves_the_last_good_one_and_is_done_again(tmp_path: Path) -> None:
    state = tmp_path / "state"
    environments = state / "making" / TASK / "bench" / "environments" / "words"
    worker, said = start_copy(f"{PROGRAMS}.installer", str(state), "fastapi")
    with said:
        await until(lambda: any(environments.glob("part/lib/python*/site-packages/pydantic*")))
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    await until(lambda: not _processes_about(environments))
    assert [path.name for path in environments.iterdir() if path.name.isdecimal()] == ["1"]
    assert (environments / "part").is_dir()
    async with bench_parts(state) as parts:
        bench = await Workbenches(state / "making", parts, "none").of(TASK)
        assert bench.environments.installed("words") == {}
        ran = await bench.run("words", "python -c 'print(1)'", 20.0, "1:a")
        assert ran.stdout == "1\n"
        await bench.add_dependency("words", FASTAPI, 120.0, dev=False)
        ran = await bench.run("words", "python -c 'import fastapi; print(fastapi.__name__)'", 20.0, "2:b")
        assert ran.stdout == "fastapi\n", ran.stderr
        assert not (environments / "part").exists()
        assert bench.files.text(place_of("words/pyproject.toml")).count("fastapi") == 1


def _processes_about(folder: Path) -> list[int]:
    """Processes with this text in their command line, such as a sandbox."""
    found: list[int] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if any(str(folder) in word for word in process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found
