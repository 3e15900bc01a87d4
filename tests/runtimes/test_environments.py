"""Environments are built once from a lock, by a real uv."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import psutil
import pytest
import uv

from engine.runtimes.environments import Environments
from engine.runtimes.failures import StartFailed
from engine.runtimes.processes import Launcher
from tests.runtimes.conftest import BASE_ENVIRONMENT, PROJECTS, eventually, silent
from toolagent.contracts.calls import ErrorType

ROOT = Path(__file__).parents[2]
ONCE = """
import asyncio, sys
from pathlib import Path
from engine.runtimes.environments import Environments
from engine.runtimes.guardian import Guardian
from engine.runtimes.ownership import Owner
from engine.runtimes.processes import Launcher

async def main(state, uv, project):
    with Guardian() as guardian:
        launcher = Launcher(Owner.of_this_process(state), guardian, {"PATH": "/usr/bin:/bin"})
        told = []
        await Environments(state / "environments", uv, launcher, {}).python_of(project, "x", told.append)
        sys.stdout.write("built" if any(text.startswith("building") for text in told) else "found")

asyncio.run(main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
"""


@pytest.fixture
def environments(launcher: Launcher, state: Path) -> Environments:
    return Environments(state / "environments", uv.find_uv_bin(), launcher, BASE_ENVIRONMENT)


@pytest.fixture
def counting_uv(tmp_path: Path) -> tuple[str, Path]:
    """uv behind a script that notes each of its runs."""
    runs, script = tmp_path / "runs", tmp_path / "uv"
    script.write_text(f'#!/bin/sh\necho "$1" >> {runs}\nexec {uv.find_uv_bin()} "$@"\n')
    script.chmod(0o755)
    return str(script), runs


def project_of(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


async def failing(environments: Environments, project: Path) -> StartFailed:
    with pytest.raises(StartFailed) as caught:
        await environments.python_of(project, "x", silent)
    return caught.value


async def test_an_environment_is_built_once_and_told_of(environments: Environments) -> None:
    told = list[str]()
    python = await environments.python_of(PROJECTS / "versatile", "versatile", told.append)
    assert any(text.startswith("building the environment of versatile") for text in told)
    told.clear()
    assert await environments.python_of(PROJECTS / "versatile", "versatile", told.append) == python
    assert told == []
    assert os.access(python, os.X_OK)


async def test_twenty_who_need_it_at_once_build_it_once(launcher: Launcher, state: Path, counting_uv: tuple[str, Path]) -> None:
    script, runs = counting_uv
    environments = Environments(state / "environments", script, launcher, BASE_ENVIRONMENT)
    pythons = await asyncio.gather(*[environments.python_of(PROJECTS / "versatile", "x", silent) for _ in range(20)])
    assert len(set(pythons)) == 1
    assert runs.read_text().split() == ["venv", "pip"]


async def test_two_processes_that_need_it_at_once_build_it_once(state: Path, counting_uv: tuple[str, Path]) -> None:
    script, runs = counting_uv
    workers = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            ONCE,
            str(state),
            script,
            str(PROJECTS / "versatile"),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        )
        for _ in range(2)
    ]
    ends = [(await worker.communicate())[0] for worker in workers]
    # The second may also have come when all was done; never do both build.
    assert b"built" in ends
    assert runs.read_text().split() == ["venv", "pip"]


async def test_what_a_build_left_that_was_ended_in_the_middle_heals(environments: Environments) -> None:
    python = await environments.python_of(PROJECTS / "versatile", "x", silent)
    folder = python.parents[1]
    for one in (folder, python.parent):
        one.chmod(0o755)
    (folder / ".complete").unlink()
    python.unlink()
    (folder / "half").touch()
    assert await environments.python_of(PROJECTS / "versatile", "x", silent) == python
    assert python.exists()
    assert not (folder / "half").exists()


async def test_an_environment_whose_python_is_gone_is_built_anew(environments: Environments) -> None:
    python = await environments.python_of(PROJECTS / "versatile", "x", silent)
    python.parent.chmod(0o755)
    python.unlink()
    python.symlink_to("/nowhere/python")
    await environments.python_of(PROJECTS / "versatile", "x", silent)
    assert os.access(python, os.X_OK)


async def test_an_environment_is_read_only_and_can_still_be_built_anew(environments: Environments) -> None:
    python = await environments.python_of(PROJECTS / "versatile", "x", silent)
    folder, interpreter = python.parents[1], python.resolve()
    paths = [path for path in (folder, *folder.rglob("*")) if not path.is_symlink()]
    assert [path for path in paths if path.stat().st_mode & 0o222] == []
    assert folder / ".complete" in paths
    assert interpreter.stat().st_mode & 0o200  # a link leads there: it is none of ours
    folder.chmod(0o755)
    (folder / ".complete").unlink()
    assert await environments.python_of(PROJECTS / "versatile", "x", silent) == python
    assert (folder / ".complete").is_file()


async def test_without_a_lock_the_remedy_is_named(environments: Environments) -> None:
    failure = await failing(environments, PROJECTS / "unlocked")
    assert failure.error_type is ErrorType.DEPENDENCY_ERROR
    assert "uv pip compile" in failure.message


async def test_a_build_that_fails_tells_what_uv_said(environments: Environments, tmp_path: Path) -> None:
    project = project_of(tmp_path / "bad", requirements__lock="left-pad==1.0\n")
    failure = await failing(environments, project)
    assert failure.error_type is ErrorType.DEPENDENCY_ERROR
    assert failure.details["exit_code"] in (1, 2)
    assert "hash" in str(failure.details["stderr"])
    assert await failing(environments, project)  # not taken for built


async def test_a_uv_that_is_not_there_is_said(launcher: Launcher, state: Path) -> None:
    failure = await failing(Environments(state / "environments", "/nowhere/uv", launcher, {}), PROJECTS / "versatile")
    assert failure.error_type is ErrorType.DEPENDENCY_ERROR


async def test_a_uv_lock_is_honoured(environments: Environments, launcher: Launcher, tmp_path: Path) -> None:
    project = project_of(
        tmp_path / "locked",
        pyproject__toml='[project]\nname = "locked"\nversion = "1.0.0"\nrequires-python = ">=3.11"\ndependencies = []\n',
    )
    locking = await asyncio.create_subprocess_exec(
        uv.find_uv_bin(), "lock", "--offline", "--quiet", "--python", sys.executable, cwd=project, stderr=asyncio.subprocess.DEVNULL
    )
    assert await locking.wait() == 0
    python = await environments.python_of(project, "locked", silent)
    assert os.access(python, os.X_OK)
    assert not (project / ".venv").exists()
    shutil.rmtree(project)


@pytest.mark.parametrize("way", ["cancelled", "too slow"])
async def test_a_build_that_does_not_end_is_ended_with_all_it_started(launcher: Launcher, state: Path, tmp_path: Path, way: str) -> None:
    pid_file, script = tmp_path / "pid", tmp_path / "slow-uv"
    script.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {pid_file}.new && mv {pid_file}.new {pid_file}\nwait\n")
    script.chmod(0o755)
    limit = 600.0 if way == "cancelled" else 1.0
    environments = Environments(state / "environments", str(script), launcher, BASE_ENVIRONMENT, build_timeout_s=limit)
    building = asyncio.create_task(environments.python_of(PROJECTS / "versatile", "x", silent))
    await eventually(pid_file.exists)
    sleeper = psutil.Process(int(pid_file.read_text()))
    if way == "cancelled":
        building.cancel()
        with pytest.raises(asyncio.CancelledError):
            await building
    else:
        with pytest.raises(StartFailed) as caught:
            await building
        assert caught.value.error_type is ErrorType.DEPENDENCY_ERROR
    assert not sleeper.is_running() or sleeper.status() == psutil.STATUS_ZOMBIE
    # The lock is free again: whoever comes next builds.
    healthy = Environments(state / "environments", uv.find_uv_bin(), launcher, BASE_ENVIRONMENT)
    assert await healthy.python_of(PROJECTS / "versatile", "x", silent)
