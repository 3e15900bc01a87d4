"""Starts at once, on a full disk, with a lost list, and of a large repository."""

import builtins
import errno
import fcntl
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.making.inspection.conftest import written
from tests.making.working_folder.conftest import LaidOut, texts


class _Held(Exception):
    """Another start has the lock."""


@pytest.mark.parametrize(("module", "step"), [(os, "symlink"), (shutil, "copyfile"), (os, "replace")])
def test_a_start_waits_until_another_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, laid_out: LaidOut, module: Any, step: str
) -> None:
    repository = written(tmp_path / "version", {"page.html": "1"})
    written(tmp_path / "home/work", {"notes.txt": "own"})
    lock, does, seen = fcntl.flock, getattr(module, step), list[str]()

    def locked(file: int, how: int) -> None:
        try:
            lock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _Held from None

    def does_while_another_starts(*arguments: Any) -> Any:
        if not seen:
            seen.append(step)
            with pytest.raises(_Held):
                laid_out(repository)
        return does(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", locked)
        patch.setattr(module, step, does_while_another_starts)
        work = laid_out(repository)
        assert laid_out(repository) == work
    assert (seen, texts(work)) == ([step], {"page.html": "1", "notes.txt": "own"})


@pytest.mark.parametrize("lost", [None, "", "[]", "1", '{"page.html": 1}', '{"page.html": "1"}', "[" * 100_000])
@pytest.mark.parametrize("name", [".repository.laid-out.json", ".repository.laid-out.seen.json"])
def test_a_lost_list_keeps_no_start(tmp_path: Path, laid_out: LaidOut, name: str, lost: str | None) -> None:
    first, second = (written(tmp_path / version, {"page.html": version, "own.html": version}) for version in ("first", "second"))
    work = laid_out(first)
    written(work, {"own.html": "own"})
    (tmp_path / "home" / name).unlink(missing_ok=True)
    if lost is not None:
        written(tmp_path / "home", {name: lost})
    # The version that brought the files still knows them.
    assert texts(laid_out(first)) == {"page.html": "first", "own.html": "own"}
    assert texts(laid_out(second)) == {"page.html": "second", "own.html": "own"}


def test_what_another_version_finds_without_a_list_is_the_apps_until_its_own_version_runs(tmp_path: Path, laid_out: LaidOut) -> None:
    first, second = (written(tmp_path / version, {"page.html": version, version: ""}) for version in ("first", "second"))
    laid_out(first)
    (tmp_path / "home/.repository.laid-out.json").unlink()
    assert texts(laid_out(second)) == {"page.html": "first", "first": "", "second": ""}
    assert texts(laid_out(first)) == {"page.html": "first", "first": ""}
    assert texts(laid_out(second)) == {"page.html": "second", "second": ""}


@pytest.mark.parametrize("brought", ["page.html", "data/page.html"])
def test_an_empty_folder_of_the_app_stays(tmp_path: Path, laid_out: LaidOut, brought: str) -> None:
    work = laid_out(written(tmp_path / "first", {brought: "1"}))
    (work / "data/own").mkdir(parents=True)
    laid_out(written(tmp_path / "second", {"data": "2", "page.html": "2"}))
    assert sorted(path.relative_to(work).as_posix() for path in work.rglob("*")) == ["data", "data/own", "page.html"]


def test_folders_of_a_version_go_with_their_last_file(tmp_path: Path, laid_out: LaidOut) -> None:
    work = laid_out(written(tmp_path / "first", {"old/deep/page.html": "1", "old/more/page.html": "1"}))
    (work / "old/more/page.html").unlink()
    laid_out(written(tmp_path / "second", {"page.html": "2"}))
    assert [path.name for path in work.iterdir()] == ["page.html"]
    assert texts(laid_out(written(tmp_path / "third", {"old": "3"}))) == {"old": "3"}


def _without_room(full: set[str], reason: int) -> Callable[[str, str], None]:
    copy = shutil.copyfile

    def copied(source: str, target: str) -> None:
        if Path(source).name not in full:
            copy(source, target)
            return
        Path(target).write_text("h")
        raise OSError(reason, os.strerror(reason))

    return copied


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_what_there_is_no_room_for_is_linked_and_copied_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, laid_out: LaidOut, reason: int
) -> None:
    first = written(tmp_path / "first", {"page.html": "1", "small.html": "1"})
    files = {"page.html": "2", "small.html": "2", "app.py": "2", "app.db": "2", "app.db-wal": "2"}
    second, full = written(tmp_path / "second", files), {"page.html", "app.py", "app.db"}
    work = laid_out(first)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", _without_room(full, reason))
        for _ in range(2):
            laid_out(second)
            assert {path.name for path in work.iterdir() if path.is_symlink()} == full
            # Beside a database that is linked there is no journal, and nothing half-written is left.
            assert {path.name for path in work.iterdir()} == files.keys() - {"app.db-wal"}
            assert texts(work) == dict.fromkeys(files.keys() - {"app.db-wal"}, "2")
    assert texts(laid_out(second)) == files
    assert not any(path.is_symlink() for path in work.iterdir())


def test_another_failure_of_a_copy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, laid_out: LaidOut) -> None:
    monkeypatch.setattr(shutil, "copyfile", _without_room({"page.html"}, errno.EIO))
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        laid_out(written(tmp_path / "version", {"page.html": "1"}))
    assert [*(tmp_path / "home/repository").iterdir()] == []


@pytest.mark.parametrize(("blocks", "free", "is_linked"), [(10_000, 4000, True), (10_000, 5000, False), (0, 0, False)])
def test_copies_leave_room_for_what_the_app_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, laid_out: LaidOut, blocks: int, free: int, is_linked: bool
) -> None:
    """Some file systems do not say how large they are."""
    status = os.statvfs_result((4096, 4096, blocks, free, free, 0, 0, 0, 0, 255))

    def said(_: str) -> os.statvfs_result:
        return status

    monkeypatch.setattr(os, "statvfs", said)
    work = laid_out(written(tmp_path / "version", {"page.html": "1", "app.py": "1", "app.db": "1"}))
    assert {path.name: path.is_symlink() for path in work.iterdir()} == {"page.html": is_linked, "app.py": False, "app.db": False}


def test_a_disk_that_has_no_room_for_the_list_keeps_no_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, laid_out: LaidOut) -> None:
    first, second = (written(tmp_path / version, {"page.html": version}) for version in ("first", "second"))
    work = laid_out(first)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", _full)
        assert texts(laid_out(second)) == {"page.html": "second"}
    assert [*(tmp_path / "home").glob(".*.new")] == []
    assert texts(laid_out(second)) == {"page.html": "second"}
    assert texts(laid_out(first)) == {"page.html": "first"}
    assert texts(work) == {"page.html": "first"}


def _full(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_later_start_reads_only_files_that_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, laid_out: LaidOut) -> None:
    later = time.time_ns() + 60_000_000_000  # so that no file has just changed
    monkeypatch.setattr(time, "time_ns", lambda: later)
    repository = written(tmp_path / "first", {"app.py": "1", "set.ini": "1", "page.html": "1"})
    work, opened, open_any = laid_out(repository), list[str](), builtins.open

    def noted(file: Any, *arguments: Any, **options: Any) -> Any:
        opened.append(Path(file).name)
        return open_any(file, *arguments, **options)  # pyright: ignore[reportUnknownVariableType]

    def read_at_a_start(version: Path) -> set[str]:
        opened.clear()
        with monkeypatch.context() as patch:
            patch.setattr(builtins, "open", noted)
            laid_out(version)
        return {name for name in opened if not name.startswith(".")}

    assert read_at_a_start(repository) == set()
    for name in ("app.py", "set.ini"):
        _change(work / name)
    assert read_at_a_start(repository) == {"app.py", "set.ini"}
    assert texts(work) == {"app.py": "1", "set.ini": "2", "page.html": "1"}
    for path in repository.iterdir():
        _change(path)
    assert read_at_a_start(repository) == {"app.py", "page.html", "set.ini"}
    assert texts(work) == {"app.py": "2", "set.ini": "2", "page.html": "2"}


def _change(path: Path) -> None:
    """Another text of the same size, and at the same time."""
    was = path.stat()
    for _ in range(1_000_000):
        path.write_text("2")
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
        if path.stat().st_ctime_ns != was.st_ctime_ns:  # the clock of a file system goes in ticks
            return
    raise AssertionError(path)


def test_a_file_that_has_just_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, laid_out: LaidOut) -> None:
    """A change within the same tick has the same time, as if the file were as it was."""
    began = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: began)
    laid_out(written(tmp_path / "version", {"app.py": "1"}))
    assert not (tmp_path / "home/.repository.laid-out.seen.json").exists()
