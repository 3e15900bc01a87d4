"""The dependencies of a local tool are installed once before its start; from its lock, if it has one.

Details are in tests/scripts.
"""

import asyncio
import dataclasses
import sys
from pathlib import Path

import pytest
import uv

from engine.runtimes.failures import StartFailed
from engine.runtimes.local.runtime import LocalRuntime
from engine.runtimes.parts import RuntimeParts
from tests.parts import sandboxing
from tests.runtimes.conftest import PROJECTS, leftovers, local_source, silent
from tests.runtimes.workers import start_worker
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest


@pytest.fixture
def own_environments(state: Path) -> Path:
    """An empty folder of the test."""
    return state / "environments"


@pytest.fixture
def runtime(parts: RuntimeParts, tmp_path: Path, state: Path, own_environments: Path) -> LocalRuntime:
    settings = dataclasses.replace(parts.local, data=tmp_path / "data")
    return LocalRuntime(settings, parts.launcher, sandboxing(state, parts.launcher, own_environments), parts.http)


def project_of(tmp_path: Path, **files: str) -> str:
    """The versatile tool with these files; `__` in a name is a dot."""
    folder = tmp_path / "data/project"
    folder.mkdir(parents=True)
    (folder / "main.py").write_bytes((PROJECTS / "versatile/main.py").read_bytes())
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder.name


async def start(runtime: LocalRuntime, project: str, tool_id: str = "x", told: list[str] | None = None) -> None:
    """Start and stop the tool."""
    progress = silent if told is None else told.append
    running = await runtime.start(ToolManifest(tool_id=tool_id, name=tool_id), local_source(project), progress)
    await runtime.stop(running)


async def failing(runtime: LocalRuntime, project: str) -> StartFailed:
    with pytest.raises(StartFailed) as caught:
        await start(runtime, project)
    return caught.value


def made(own_environments: Path) -> list[Path]:
    return [path for path in own_environments.iterdir() if path.is_dir() and not path.suffix]


async def test_it_is_installed_once_and_told_of(runtime: LocalRuntime, tmp_path: Path) -> None:
    project, told = project_of(tmp_path, requirements__lock=""), list[str]()
    await start(runtime, project, told=told)
    assert any(text.startswith("installing what x depends on") for text in told)
    told.clear()
    await start(runtime, project, told=told)
    assert told == ["starting x"]


@pytest.mark.parametrize("files", [{}, {"pyproject__toml": '[project]\nname = "x"\nversion = "1"\n'}, {"requirements__txt": ""}])
async def test_a_project_without_a_lock_runs_with_what_it_says_it_depends_on(
    runtime: LocalRuntime, tmp_path: Path, own_environments: Path, files: dict[str, str]
) -> None:
    await start(runtime, project_of(tmp_path, **files))
    assert len(made(own_environments)) == 1


async def test_without_a_lock_what_it_depends_on_is_truly_installed(runtime: LocalRuntime, tmp_path: Path) -> None:
    failure = await failing(runtime, project_of(tmp_path, requirements__txt="no-such-package-at-all==1.0\n"))
    assert failure.error_type is ErrorType.DEPENDENCY_ERROR
    assert "no-such-package-at-all" in f"{failure.message} {failure.details}"


async def test_a_lock_without_hashes_is_refused_and_never_taken_for_installed(
    runtime: LocalRuntime, tmp_path: Path, state: Path, own_environments: Path
) -> None:
    project = project_of(tmp_path, requirements__lock="left-pad==1.0\n")
    for _ in range(2):
        failure = await failing(runtime, project)
        assert failure.error_type is ErrorType.DEPENDENCY_ERROR
        assert "hash" in f"{failure.message} {failure.details}"
        assert (made(own_environments), leftovers(state)) == ([], [])


async def test_first_calls_of_several_tools_at_once_install_once(runtime: LocalRuntime, tmp_path: Path, own_environments: Path) -> None:
    project, told = project_of(tmp_path, requirements__lock=""), list[str]()
    await asyncio.gather(*[start(runtime, project, tool_id, told) for tool_id in ("a", "b", "c", "d")])
    assert len({text for text in told if text.startswith("installing")}) == 1
    assert len(made(own_environments)) == 1


async def test_two_workers_that_need_it_at_once_install_it_once(tmp_path: Path, own_environments: Path) -> None:
    workers = await asyncio.gather(*[start_worker(tmp_path / name, own_environments, None) for name in ("one", "other")])
    for worker, _ in workers:
        worker.kill()
        worker.wait()
    # The second may also have come when all was done; never do both install.
    assert sum(one.installed for _, one in workers) == 1
    assert len(made(own_environments)) == 1


@pytest.mark.parametrize("how", ["half of it is there", "its interpreter is gone"])
async def test_what_a_killed_installation_left_heals(runtime: LocalRuntime, tmp_path: Path, own_environments: Path, how: str) -> None:
    project = project_of(tmp_path, requirements__lock="")
    await start(runtime, project)
    [folder] = made(own_environments)
    python = folder / "env/bin/python"
    for one in (folder, python.parent):
        one.chmod(0o755)
    python.unlink()
    if how == "half of it is there":
        folder.with_suffix(".json").unlink()
        (folder / "half").touch()
    else:
        python.symlink_to("/nowhere/python")
    await start(runtime, project)
    assert python.exists()
    assert not (folder / "half").exists()


async def test_a_uv_lock_is_honoured_and_the_project_stays_as_it_was(runtime: LocalRuntime, tmp_path: Path) -> None:
    about = '[project]\nname = "locked"\nversion = "1.0.0"\nrequires-python = ">=3.11"\ndependencies = []\n'
    folder = tmp_path / "data" / project_of(tmp_path, pyproject__toml=about)
    locking = await asyncio.create_subprocess_exec(
        uv.find_uv_bin(), "lock", "--offline", "--quiet", "--python", sys.executable, cwd=folder, stderr=asyncio.subprocess.DEVNULL
    )
    assert await locking.wait() == 0
    await start(runtime, folder.name)
    assert {path.name for path in folder.iterdir()} == {"main.py", "pyproject.toml", "uv.lock"}
