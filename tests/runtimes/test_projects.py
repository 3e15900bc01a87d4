"""Projects are unpacked from archives once, completely or not at all."""

import asyncio
import io
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.runtimes.failures import StartFailed
from engine.runtimes.projects import Projects
from toolagent.contracts.calls import ErrorType
from toolagent.core.failures import ContentMissingError, ContentUnavailableError

_ID = "file_" + 32 * "a"
_OTHER = "file_" + 32 * "b"
_ROOT = Path(__file__).parents[2]
_DYING_SWEEP = """
import asyncio, os, pathlib, sys

from engine.runtimes.projects import Projects

removed = []


def die_at_the_second(event, arguments):
    if event == "os.remove":
        removed.append(arguments)
        if len(removed) == 2:
            os._exit(9)


sys.addaudithook(die_at_the_second)
asyncio.run(Projects(pathlib.Path(sys.argv[1]), None).sweep(()))
"""


class _Folder:
    """Archives in a folder, by id; counts its requests."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked = folder, 0
        self.away = False
        folder.mkdir()

    def pack(self, content: str, add: Callable[[tarfile.TarFile], None]) -> None:
        with tarfile.open(self.folder / content, "w") as tar:
            add(tar)

    async def fetch(self, content: str, folder: Path) -> Path:
        self.asked += 1
        if self.away:
            raise ContentUnavailableError("The store is away.")
        if not (self.folder / content).exists():
            raise ContentMissingError(content)
        return Path(await asyncio.to_thread(shutil.copyfile, self.folder / content, folder / "archive.tar"))


@pytest.fixture
def archives(tmp_path: Path) -> _Folder:
    archives = _Folder(tmp_path / "archives")
    archives.pack(_ID, lambda tar: _add(tar, {"main.py": b"print(1)", "data/list.txt": b"one"}))
    return archives


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "projects"


def _add(tar: tarfile.TarFile, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        member = tarfile.TarInfo(name)
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))


def _silent(_: str) -> None:
    return


async def _failure(projects: Projects, content: str = _ID) -> ErrorType:
    with pytest.raises(StartFailed) as failure:
        await projects.folder_of(content, "tool", _silent)
    assert content in failure.value.message
    return failure.value.error_type


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*")}


async def test_all_who_ask_at_once_wait_for_one_unpacking(archives: _Folder, folder: Path) -> None:
    # Each has its own view of the folder, as other processes have.
    found = await asyncio.gather(*(Projects(folder, archives).folder_of(_ID, "tool", _silent) for _ in range(8)))
    assert set(found) == {folder / _ID}
    assert (folder / _ID / "data/list.txt").read_bytes() == b"one"
    assert archives.asked == 1
    assert _names(folder) == {_ID, f"{_ID}.lock"}


async def test_nobody_may_write_to_it(archives: _Folder, folder: Path) -> None:
    project = await Projects(folder, archives).folder_of(_ID, "tool", _silent)
    assert [path for path in (*project.rglob("*"),) if path.stat().st_mode & 0o222] == []


async def test_what_a_crash_left_half_unpacked_is_done_again(archives: _Folder, folder: Path) -> None:
    (folder / f"{_ID}.1234.part/project").mkdir(parents=True)
    (folder / f"{_ID}.1234.part/project/main.py").touch()
    projects = Projects(folder, archives)
    assert await projects.sweep({_ID}) == (f"{_ID}.1234.part",)
    assert (await projects.folder_of(_ID, "tool", _silent) / "main.py").read_bytes() == b"print(1)"


async def test_a_cancelled_start_leaves_nothing_half_done(archives: _Folder, folder: Path) -> None:
    projects = Projects(folder, archives)

    def cancel(_: str) -> None:
        start.cancel()

    start = asyncio.create_task(projects.folder_of(_ID, "tool", cancel))
    with pytest.raises(asyncio.CancelledError):
        await start
    assert not [name for name in _names(folder) if name.endswith(".part")]
    assert (await projects.folder_of(_ID, "tool", _silent)).is_dir()


async def test_what_no_version_refers_to_is_swept(archives: _Folder, folder: Path) -> None:
    archives.pack(_OTHER, lambda tar: _add(tar, {"main.py": b""}))
    projects = Projects(folder, archives)
    for content in (_ID, _OTHER):
        await projects.folder_of(content, "tool", _silent)
    await projects.sweep({_OTHER})
    assert _names(folder) == {_OTHER, f"{_OTHER}.lock"}
    assert (await projects.folder_of(_ID, "tool", _silent)).is_dir()


async def test_what_a_crash_left_half_removed_is_not_taken_for_a_project(archives: _Folder, folder: Path) -> None:
    projects = Projects(folder, archives)
    project = await projects.folder_of(_ID, "tool", _silent)
    (folder / f"{_ID}.lock").unlink()
    whole = {path.relative_to(project) for path in project.rglob("*")}
    sweep = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", _DYING_SWEEP, str(folder)], cwd=_ROOT, check=False)
    assert sweep.returncode == 9
    again = await projects.folder_of(_ID, "tool", _silent)
    assert {path.relative_to(again) for path in again.rglob("*")} == whole
    await projects.sweep({_ID})
    assert _names(folder) == {_ID, f"{_ID}.lock"}


async def test_an_archive_that_is_missing_is_named(archives: _Folder, folder: Path) -> None:
    assert await _failure(Projects(folder, archives), _OTHER) is ErrorType.DEPENDENCY_ERROR


async def test_a_store_that_is_away_is_no_fault_of_the_archive(archives: _Folder, folder: Path) -> None:
    archives.away = True
    assert await _failure(Projects(folder, archives)) is ErrorType.UNAVAILABLE


@pytest.mark.parametrize("content", ["../escape", "file_x", ""])
async def test_what_is_no_id_is_no_folder_name(archives: _Folder, folder: Path, content: str) -> None:
    assert await _failure(Projects(folder, archives), content) is ErrorType.SECURITY_ERROR


def _link(tar: tarfile.TarFile) -> None:
    member = tarfile.TarInfo("link")
    member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
    tar.addfile(member)


def _huge(tar: tarfile.TarFile) -> None:
    member = tarfile.TarInfo("huge")
    member.size = 1 << 40
    tar.addfile(member)


def _many(tar: tarfile.TarFile) -> None:
    for number in range(20_001):
        tar.addfile(tarfile.TarInfo(str(number)))


def _outside(tar: tarfile.TarFile) -> None:
    _add(tar, {"../outside": b"x"})


@pytest.mark.parametrize("add", [_link, _huge, _many, _outside])
async def test_an_archive_that_means_harm_is_refused_and_leaves_nothing(
    folder: Path, tmp_path: Path, add: Callable[[tarfile.TarFile], None]
) -> None:
    archives = _Folder(tmp_path / "bad")
    archives.pack(_ID, add)
    projects = Projects(folder, archives)
    with pytest.raises(StartFailed) as failure:
        await projects.folder_of(_ID, "tool", _silent)
    assert failure.value.error_type is ErrorType.DEPENDENCY_ERROR
    assert _names(folder) == {f"{_ID}.lock"}


async def test_a_damaged_archive_is_named(archives: _Folder, folder: Path) -> None:
    (archives.folder / _ID).write_bytes(b"no archive at all")
    assert await _failure(Projects(folder, archives)) is ErrorType.DEPENDENCY_ERROR
