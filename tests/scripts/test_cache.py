"""Unneeded environments are removed; one that is in use never is."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
import pytest_asyncio

from engine.runtimes.environments.cache import CacheLimits, drop, held, is_marked, keep, mark, reserve, tidy, touch
from engine.runtimes.environments.dependencies import Script, dependencies_of
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.environments.indexes import Index
from engine.runtimes.folders import entries, seal
from engine.runtimes.sandbox.egress import Egress
from engine.runtimes.sandbox.identity import PAYLOAD
from engine.runtimes.scripts.commands import ScriptCall
from tests.copies import start_copy, start_text
from tests.parts import installer_of
from tests.scripts.harness import BARE, IDENTITY, Scripts, script_service
from tests.scripts.index import PackageIndex, package_index, resolve
from toolagent.contracts.manifest import SecurityContext
from toolagent.contracts.sources import ScriptLanguage

HOLDS = """
import signal, sys
from pathlib import Path
from engine.runtimes.environments.cache import held
with held(Path(sys.argv[1])):
    print("held", flush=True)
    signal.pause()
"""
OLD_S = 3600.0


def made(folder: Path, letter: str, *, age_s: float = OLD_S, kib: int = 100) -> Path:
    root = folder / (letter * 32)
    root.mkdir()
    (root / "package").write_bytes(b"x" * kib * 1024)
    (root / "package").chmod(0o444)
    root.chmod(0o555)
    root.with_suffix(".build").mkdir()
    mark(root, ["package"])
    used_at = time.time() - age_s
    os.utime(root.with_suffix(".json"), (used_at, used_at))
    return root


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_was_not_used_for_long_goes_with_all_of_it(tmp_path: Path) -> None:
    old, new = made(tmp_path, "a"), made(tmp_path, "b", age_s=60)
    assert tidy(tmp_path, CacheLimits(idle_s=600)) == (old.name,)
    assert names_in(tmp_path) == {new.name, f"{new.name}.json", f"{new.name}.build"}


def test_over_the_size_the_longest_unused_goes_first_and_what_was_used_lately_stays(tmp_path: Path) -> None:
    first, second = made(tmp_path, "a", age_s=9000), made(tmp_path, "b", age_s=8000)
    made(tmp_path, "c", age_s=7000)
    made(tmp_path, "d", age_s=1, kib=1000)
    assert tidy(tmp_path, CacheLimits(max_bytes=1150 * 1024)) == (first.name, second.name)
    assert tidy(tmp_path, CacheLimits(max_bytes=0)) == ("c" * 32,)


async def test_what_another_process_uses_stays_until_that_ends(tmp_path: Path) -> None:
    root = made(tmp_path, "a")
    holder, said = start_text(HOLDS, str(root))
    assert await asyncio.to_thread(said.readline) == b"held\n"
    assert await asyncio.to_thread(tidy, tmp_path, CacheLimits(max_bytes=0, idle_s=1)) == ()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    said.close()
    assert await asyncio.to_thread(tidy, tmp_path, CacheLimits(max_bytes=0, idle_s=1)) == (root.name,)


def test_who_uses_it_counts_as_a_use_when_he_is_done(tmp_path: Path) -> None:
    root = made(tmp_path, "a")
    with held(root):
        pass
    assert tidy(tmp_path, CacheLimits(idle_s=600)) == ()


def test_what_a_build_left_is_sealed_measured_and_removed_however_deep_it_is(tmp_path: Path) -> None:
    whole, half = (tmp_path / (letter * 32) for letter in "ab")
    for root in (whole, half):
        deep(root, 1100)
    (whole / "closed").mkdir(mode=0)
    seal(whole)
    mark(whole, ["d"])
    assert {Path(entry.path).stat().st_mode & 0o222 for entry in entries(whole)} == {0}
    used_at = time.time() - OLD_S
    os.utime(whole.with_suffix(".json"), (used_at, used_at))
    assert set(tidy(tmp_path, CacheLimits(idle_s=600))) == {whole.name, half.name}
    assert names_in(tmp_path) == set()


def test_what_only_its_maker_could_read_is_everybodys_once_it_is_sealed(tmp_path: Path) -> None:
    (tmp_path / "whole" / "inner").mkdir(mode=0o700, parents=True)
    for name, mode in (("data", 0o600), ("program", 0o700)):
        (tmp_path / "whole" / "inner" / name).touch(mode)
    seal(tmp_path / "whole")
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (tmp_path / "whole").rglob("*")}
    assert modes == {"inner": 0o555, "data": 0o444, "program": 0o555}


@pytest.mark.skipif(os.geteuid() != 0, reason="Only root can make folders of other users, and only its service has any.")
def test_what_was_made_when_all_tools_were_one_user_is_sealed_again(tmp_path: Path) -> None:
    root = made(tmp_path, "a")
    (root / "data").touch(0o400)
    for path in (root, root / "data"):
        PAYLOAD.own(path)
    assert tidy(tmp_path, CacheLimits()) == ()
    assert {(path.stat().st_uid, path.stat().st_mode & 0o444) for path in (root, root / "data")} == {(0, 0o444)}


def deep(root: Path, levels: int) -> None:
    root.mkdir()
    here = os.open(root, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)


def test_nothing_is_removed_but_our_own(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos.json").write_text("{}")
    assert tidy(tmp_path, CacheLimits(max_bytes=0, idle_s=0)) == ()
    assert names_in(tmp_path) == {"photos", "photos.json"}
    assert tidy(tmp_path / "nowhere", CacheLimits()) == ()


@pytest.fixture
def index() -> Generator[PackageIndex]:
    with package_index() as index:
        yield index


@pytest_asyncio.fixture
async def scripts(tmp_path: Path, root: Path, index: PackageIndex) -> AsyncGenerator[Scripts]:
    async def indexes(_: ScriptLanguage) -> Index:
        return Index(index.hosts, index.variables)

    state = tmp_path / "state"
    installer = installer_of(indexes, Egress(state, (), IDENTITY, resolve=resolve), 60)
    async with script_service(state, root, state / "environments", installer=installer) as scripts:
        yield scripts


async def test_an_environment_is_not_removed_while_a_script_runs_in_it(scripts: Scripts) -> None:
    path = scripts.write(
        "a/main.py",
        'import sys, time\nsys.stderr.write(\'::progress:: {"message": "up"}\\n\')\nsys.stderr.flush()\ntime.sleep(3)\nprint(1)',
    )
    root = (await scripts.prepare(path)).environment.folder.root
    running = asyncio.create_task(scripts.run(path))
    async with asyncio.timeout(60):
        while "up" not in scripts.told:  # noqa: ASYNC110 - another process tells it
            await asyncio.sleep(0.02)
    long_ago = time.time() - OLD_S
    os.utime(root.with_suffix(".json"), (long_ago, long_ago))
    assert await asyncio.to_thread(tidy, root.parent, CacheLimits(max_bytes=0, idle_s=1)) == ()
    assert (await running).output == 1


async def test_a_script_whose_environment_was_removed_gets_another(scripts: Scripts) -> None:
    path = scripts.write("a/main.py", "print(1)")
    prepared = await scripts.prepare(path)
    root = prepared.environment.folder.root
    long_ago = time.time() - OLD_S
    os.utime(root.with_suffix(".json"), (long_ago, long_ago))
    assert await asyncio.to_thread(tidy, root.parent, CacheLimits(idle_s=60)) == (root.name,)
    assert not await scripts.service.is_current(prepared)
    call = ScriptCall("tool", "call-12345678", "tool", {}, 30.0, SecurityContext())
    with pytest.raises(ScriptFailure) as caught:
        await scripts.service.execute(prepared, call, scripts.told.append)
    assert (caught.value.kind, caught.value.ran) == (ScriptErrorKind.UNAVAILABLE, False)
    assert (await scripts.run(path)).output == 1


@pytest.mark.timeout(300)
async def test_a_worker_killed_while_it_installs_leaves_what_the_next_makes_good(
    tmp_path: Path, root: Path, scripts: Scripts, index: PackageIndex
) -> None:
    index.add_source("slow", "1.0", "import time; time.sleep(5)")
    scripts.write("a/requirements.txt", "slow\n")
    scripts.write("a/main.py", "import slow\nprint(slow.value)")
    environments = scripts.state / "environments"
    places = (str(tmp_path / "other"), str(root), str(environments))
    worker, said = start_copy("tests.scripts.programs.installer", *places, str(index.port), variables=BARE)
    async with asyncio.timeout(120):
        while not index.count(".tar.gz"):  # noqa: ASYNC110 - another thread serves it
            await asyncio.sleep(0.05)
    half = [path for path in environments.iterdir() if path.is_dir() and not path.suffix]
    assert len(half) == 1
    # Somebody makes it: it is left alone.
    assert await asyncio.to_thread(tidy, environments, CacheLimits()) == ()
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    said.close()
    assert half[0].is_dir()
    assert not is_marked(half[0])
    assert (await scripts.run("a/main.py")).output == 1
    assert is_marked(half[0])


@pytest.mark.timeout(300)
async def test_half_an_environment_that_nobody_asks_for_again_goes(scripts: Scripts) -> None:
    half = scripts.state / "environments" / ("f" * 32)
    (half / "project").mkdir(parents=True)
    half.with_suffix(".lock").touch()
    assert await scripts.environments.tidy() == (half.name,)
    assert names_in(half.parent) == set()


def test_what_was_made_for_a_task_goes_with_it_unless_somebody_else_used_it(tmp_path: Path) -> None:
    roots = {letter: made(tmp_path, letter) for letter in "abcdef"}
    for letter in "abcde":
        reserve(roots[letter], "create_00000001")
    reserve(roots["f"], "create_00000002")
    touch(roots["a"], "create_00000001")  # by itself
    touch(roots["b"], "")
    touch(roots["c"], "create_00000002")
    reserve(roots["d"], "")
    with held(roots["e"]):
        assert drop(tmp_path, "create_00000001") == (roots["a"].name,)
    assert {root.name for root in roots.values() if root.exists()} == {roots[letter].name for letter in "bcdef"}
    keep(tmp_path, "create_00000002")
    assert drop(tmp_path, "create_00000002") == ()
    assert drop(tmp_path, "create_00000001") == (roots["e"].name,)
    assert [path.name for path in tmp_path.glob("*.task")] == []


async def test_who_waits_for_an_environment_that_a_task_makes_has_it_too(index: PackageIndex, scripts: Scripts) -> None:
    index.add_source("slow", "1.0", "import time; time.sleep(0.5)")
    scripts.write("a/requirements.txt", "slow\n")
    scripts.write("a/main.py", "import slow\nprint(slow.value)")
    dependencies = dependencies_of(Script(scripts.root / "a/main.py", "a/main.py"), ScriptLanguage.PYTHON)
    of_task = scripts.environments.for_task("create_00000001")
    environment, _ = await asyncio.gather(
        of_task.ensure(dependencies, "one", scripts.told.append), scripts.environments.ensure(dependencies, "two", scripts.told.append)
    )
    await of_task.drop("create_00000001")
    assert scripts.environments.is_whole(environment)
    await asyncio.to_thread(reserve, environment.folder.root, "create_00000001")
    await of_task.drop("create_00000001")
    assert not scripts.environments.is_whole(environment)
