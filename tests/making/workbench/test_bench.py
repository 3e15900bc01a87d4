"""Projects, commands and packages of a task, in the sandbox."""

import asyncio
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.making.python_sources.wanted import Wanted
from engine.making.uv.locking import ProjectLocks
from engine.making.uv.runs import UvRuns
from engine.making.workbench.bench import Workbench, Workbenches
from engine.making.workbench.places import WORK, place_of
from engine.making.workbench.refusal import BenchRefused
from tests.making.workbench.conftest import TASK
from toolagent_service.contracts.dependency_policy import DependencyVerdict

IDNA = DependencyVerdict(requirement="idna>=3", name="idna")


async def test_a_project_has_a_python_of_its_own_and_its_files(bench: Workbench) -> None:
    folder = await bench.create_project("words")
    bench.files.write(place_of("words/main.py"), "import sys\nprint(sys.prefix)\n", "overwrite", "1:a")
    ran = await bench.run(folder, "pwd; python main.py; echo told >&2; echo x > made.txt; exit 3", 20.0, "2:b")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (3, f"{WORK}/words\n/environments/words\n", "told\n")
    assert bench.files.read(place_of(f"{WORK}/words/made.txt")) == "x\n"
    assert await bench.create_project("words") == folder


async def test_packages_are_installed_into_a_version_of_their_own_and_written_into_the_project(bench: Workbench) -> None:
    folder = await bench.create_project("words")
    before = bench.environments.newest("words")
    await bench.add_dependency(folder, IDNA, 60.0, dev=False)
    ran = await bench.run(folder, "python -c 'import idna; print(idna.__name__)'; touch /environments/words/x", 20.0, "1:a")
    assert ran.stdout == "idna\n"
    assert ran.exit_code != 0
    assert "Read-only" in ran.stderr
    assert (await bench.run(folder, "uv run python -c 'import idna'", 20.0, "2:b")).exit_code == 0
    assert before is not None
    assert not list(before.glob("lib/python*/site-packages/idna"))
    assert "idna" in bench.environments.installed("words")
    assert '"idna>=3"' in bench.files.text(place_of("words/pyproject.toml"))


async def test_an_installation_that_fails_leaves_what_was_there(bench: Workbench) -> None:
    folder = await bench.create_project("words")
    newest = bench.environments.newest("words")
    with pytest.raises(BenchRefused, match="as it was before"):
        await bench.add_dependency(folder, DependencyVerdict(requirement="idna==99.99", name="idna"), 60.0, dev=False)
    assert bench.environments.newest("words") == newest
    assert "idna" not in bench.files.text(place_of("words/pyproject.toml"))


@pytest.mark.promise("no-use-done-twice")
async def test_an_installation_that_is_cancelled_when_it_is_nearly_done_is_whole(bench: Workbench) -> None:
    environments, begun, go_on = bench.environments, threading.Event(), threading.Event()
    finish = environments._finish  # pyright: ignore[reportPrivateUsage]

    def held(part: Path, project: str) -> Path:
        begun.set()
        go_on.wait(30)
        return finish(part, project)

    environments._finish = held  # pyright: ignore[reportPrivateUsage]
    making = asyncio.create_task(bench.create_project("words"))
    assert await asyncio.to_thread(begun.wait, 30)
    making.cancel()
    await asyncio.wait([making], timeout=0.3)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await making
    newest = environments.newest("words")
    assert newest is not None
    assert (newest / "pyvenv.cfg").is_file()
    assert (newest / "bin" / "python").is_symlink()


async def test_what_is_newer_than_was_judged_is_not_installed(bench: Workbench) -> None:
    folder = await bench.create_project("words")
    judged = IDNA.model_copy(update={"not_after": datetime(2024, 1, 1, tzinfo=UTC)})
    await bench.add_dependency(folder, judged, 60.0, dev=True)
    assert bench.environments.installed("words") == {"idna": "3.6"}


async def test_a_command_over_time_is_ended_and_says_so(bench: Workbench) -> None:
    folder = await bench.create_project("words")
    ran = await bench.run(folder, "echo begun; sleep 60", 0.5, "1:a")
    assert (ran.exit_code, ran.stdout) == (124, "begun\n")
    assert "timeout" in ran.note


async def test_a_long_output_is_shown_in_part_and_can_be_read_to_its_end(bench: Workbench) -> None:
    folder = await bench.create_project("words")
    ran = await bench.run(folder, "seq 1 20000", 20.0, "1:a")
    assert len(ran.stdout) < 9_000
    log = ran.stdout.split("path '")[1].split("'")[0]
    assert bench.files.text(place_of(log)) == "".join(f"{number}\n" for number in range(1, 20_001))
    seen = await bench.run(folder, f"tail -n 1 {log}", 20.0, "2:b")
    assert seen.stdout == "20000\n"


@pytest.mark.promise("agents-stay-inside")
async def test_commands_have_no_network_and_see_nothing_of_the_machine(bench: Workbench, tmp_path: Path) -> None:
    folder = await bench.create_project("words")
    ran = await bench.run(folder, f"ls {tmp_path}; python -c 'import socket; socket.create_connection((\"1.1.1.1\", 53), 2)'", 20.0, "1:a")
    assert ran.exit_code != 0
    assert ran.stdout == ""
    assert "unreachable" in ran.stderr


async def test_what_runs_in_the_background_ends_with_the_task(bench: Workbench, benches: Workbenches) -> None:
    folder = await bench.create_project("words")
    log = place_of(await bench.start(folder, "echo here; echo there >&2; sleep 600", 600.0, "1:a"))
    async with asyncio.timeout(60):
        while "there" not in bench.files.text(log):  # noqa: ASYNC110 - what is waited for happens in another process
            await asyncio.sleep(0.02)
    assert bench.files.text(log) == "here\nthere\n"
    assert "still running" in bench.commands.state_of(log)
    (process,) = bench.commands._running.values()  # pyright: ignore[reportPrivateUsage]
    await benches.remove(TASK)
    assert process.has_ended
    assert not bench.folder.exists()


@pytest.mark.promise("nothing-left-of-a-failure")
async def test_a_task_leaves_nothing_however_its_files_are(bench: Workbench, benches: Workbenches) -> None:
    folder = await bench.create_project("words")
    deep = "import os\nfor _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')\n"
    await bench.run(folder, f'ln -s /etc out; mkdir shut; touch shut/x; chmod 0 shut; python -c "{deep}"', 30.0, "1:a")
    assert await benches.present() == {TASK}
    await benches.clear(TASK)
    assert await benches.present() == frozenset()
    assert not bench.folder.exists()


async def test_only_projects_that_are_there_can_be_worked_in(bench: Workbench) -> None:
    await bench.create_project("words")
    for named in ("other", "/work", f"{WORK}/words/sub", "/logs", "words/../words", ".."):
        with pytest.raises(BenchRefused):
            await bench.run(named, "true", 5.0, "1:a")
    for name in ("", "Words", "../x", "a/b", "a" * 65, ".venv"):
        with pytest.raises(BenchRefused):
            await bench.create_project(name)


async def test_a_project_that_was_made_before_is_brought_with_the_packages_of_its_lock(bench: Workbench, tmp_path: Path) -> None:
    folder = await bench.create_project("words")
    await bench.add_dependency(folder, IDNA, 60.0, dev=False)
    locks = ProjectLocks(UvRuns(bench._parts.executor, bench._parts.programs, bench._parts.installer))  # pyright: ignore[reportPrivateUsage]
    lock = await locks.lock(Wanted(("idna>=3",)), (), tmp_path / "locking")
    before = tmp_path / "before"
    await asyncio.to_thread(_tool_in, before, lock)
    assert await bench.bring_project("mended", before) == f"{WORK}/mended"
    assert [*bench.environments.installed("mended")] == ["idna"]
    # It had no list of its own but the lock: without one the next lock would be empty.
    assert '"idna==' in bench.files.text(place_of("mended/pyproject.toml"))
    ran = await bench.run("mended", "python main.py && echo more >> main.py && echo gone > requirements.lock", 20.0, "1:a")
    assert (ran.exit_code, ran.stdout) == (0, "mended\n"), ran.stderr
    await bench.bring_project("mended", before)
    assert bench.files.text(place_of("mended/main.py")).endswith("more\n")


def _tool_in(folder: Path, lock: str) -> None:
    folder.mkdir()
    (folder / "main.py").write_text("import idna\nprint('mended')\n")
    (folder / "requirements.lock").write_text(lock)
