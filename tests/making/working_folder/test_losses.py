"""An app's own files stay in its working folder, and no file keeps it from starting."""

import builtins
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.making.inspection.conftest import written
from tests.making.working_folder.conftest import LaidOut, texts


def test_what_the_app_copies_or_renames_is_its_own(tmp_path: Path, laid_out: LaidOut) -> None:
    first = written(tmp_path / "first", {"example.ini": "1", "plugin.py": "1", "once.ini": "1"})
    work = laid_out(first)
    shutil.copy2(work / "example.ini", work / "config.ini")
    shutil.copy2(work / "plugin.py", work / "own.py")
    (work / "once.ini").rename(work / "renamed.ini")
    made = {"config.ini": "1", "own.py": "1", "renamed.ini": "1"}
    assert texts(laid_out(first)) == {"example.ini": "1", "plugin.py": "1", "once.ini": "1"} | made
    assert texts(laid_out(written(tmp_path / "second", {"example.ini": "2"}))) == {"example.ini": "2"} | made


@pytest.mark.parametrize("name", ["page.html", "app.db"])
def test_a_start_that_dies_leaves_no_broken_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, laid_out: LaidOut, name: str) -> None:
    def dies(_: str, target: str) -> None:
        Path(target).write_text("h")
        raise KeyboardInterrupt

    repository = written(tmp_path / "version", {name: "hello"})
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", dies)
        with pytest.raises(KeyboardInterrupt):
            laid_out(repository)
    assert texts(laid_out(repository)) == {name: "hello"}


def test_what_a_start_copied_before_it_died_is_not_the_apps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, laid_out: LaidOut) -> None:
    first, second = (written(tmp_path / version, {"a.html": version, "b.html": version}) for version in ("first", "second"))
    copy, copied = shutil.copyfile, list[str]()

    def dies_later(source: str, target: str) -> None:
        if copied:
            raise KeyboardInterrupt
        copied.append(copy(source, target))

    laid_out(first)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", dies_later)
        with pytest.raises(KeyboardInterrupt):
            laid_out(second)
    assert texts(laid_out(first)) == {"a.html": "first", "b.html": "first"}


def test_a_file_that_vanishes_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, laid_out: LaidOut) -> None:
    repository = written(tmp_path / "version", {"page.html": "1"})
    work = laid_out(repository)
    walk = os.walk

    def walk_late(top: str, *arguments: Any, **options: Any) -> Any:
        for place, folders, files in walk(top, *arguments, **options):
            yield place, folders, [*files, "vanished.txt", "vanished.py"] if Path(place) == work else files

    monkeypatch.setattr(os, "walk", walk_late)
    assert texts(laid_out(repository)) == {"page.html": "1"}


def test_a_file_that_cannot_be_read_is_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, laid_out: LaidOut) -> None:
    """root can read all files, so the mode is not enough here."""
    names = ("secret.key", "secret.db")
    repository = written(tmp_path / "version", {**dict.fromkeys(names, "1"), "page.html": "1"})
    open_any = builtins.open

    def opened(file: Any, *arguments: Any, **options: Any) -> Any:
        if Path(file).parent == repository and Path(file).name in names:
            raise PermissionError(file)
        return open_any(file, *arguments, **options)  # pyright: ignore[reportUnknownVariableType]

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", opened)
        laid_out(repository)
        work = laid_out(repository)
    assert {path.name: path.is_symlink() for path in work.iterdir()} == {"secret.key": True, "secret.db": True, "page.html": False}


@pytest.mark.parametrize(
    ("first", "second"), [("data.txt", "data.txt/page.html"), ("data.txt/page.html", "data.txt"), ("a.py/b/c.py", "a.py")]
)
def test_a_file_becomes_a_folder_and_the_reverse(tmp_path: Path, laid_out: LaidOut, first: str, second: str) -> None:
    laid_out(written(tmp_path / "first", {first: "1"}))
    assert texts(laid_out(written(tmp_path / "second", {second: "2"}))) == {second: "2"}


@pytest.mark.parametrize(("own", "brought"), [("data", "data/page.html"), ("data/notes.txt", "data"), ("run.py/notes.txt", "run.py")])
def test_what_the_app_has_where_the_version_has_another_kind_stays(tmp_path: Path, laid_out: LaidOut, own: str, brought: str) -> None:
    work = laid_out(written(tmp_path / "first", {"page.html": "1"}))
    written(work, {own: "by the app"})
    assert texts(laid_out(written(tmp_path / "second", {brought: "2", "page.html": "2"}))) == {own: "by the app", "page.html": "2"}


def test_modules_that_were_copied_before_there_was_a_list_are_ours(tmp_path: Path, laid_out: LaidOut) -> None:
    work = written(tmp_path / "home/repository", {"app.py": "1", "same.py": "1", "gone.py": "1", "own.py": "by the app", "own.ini": "1"})
    for name in ("app.py", "same.py", "gone.py"):
        os.utime(work / name, (1, 1))
    second = written(tmp_path / "second", {"app.py": "2", "same.py": "1"})
    there = {"app.py": "2", "same.py": "1", "own.py": "by the app", "own.ini": "1"}
    assert texts(laid_out(second)) == there
    shutil.copy2(work / "same.py", work / "copied.py")
    assert texts(laid_out(second)) == there | {"copied.py": "1"}
