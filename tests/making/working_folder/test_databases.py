"""A database that a repository brings with its journals is the app's from the first start on: no start brings an old journal back."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.making.inspection.conftest import written
from tests.making.working_folder.conftest import LaidOut, texts


def _rows(database: Path) -> list[str]:
    connection = sqlite3.connect(database)
    try:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
        return [text for (text,) in connection.execute("select text from notes order by id")]
    finally:
        connection.close()


def _write(database: Path, text: str, count: int) -> None:
    connection = sqlite3.connect(database)
    with connection:
        connection.executemany("insert into notes (text) values (?)", [(text,)] * count)
    connection.close()


def _left_by_a_killed_app(folder: Path, database: str, mode: str) -> None:
    """The files of a database whose app was killed within a transaction (`delete`), or before a checkpoint (`wal`)."""
    folder.mkdir(parents=True)
    connection = sqlite3.connect(folder / "live", isolation_level=None)
    connection.execute(f"pragma journal_mode={mode}")
    connection.execute("pragma cache_size=2")
    connection.execute("create table notes (id integer primary key, text)")
    connection.executemany("insert into notes (text) values (?)", [("seed",)] * 500)
    if mode == "delete":
        connection.execute("begin")
        connection.execute("update notes set text = 'half written, and longer than before'")
    for ending in ("-wal", "-journal"):
        if (live := folder / f"live{ending}").exists():
            shutil.copyfile(live, folder / f"{database}{ending}")
    shutil.copyfile(folder / "live", folder / database)
    connection.close()
    for live in folder.glob("live*"):
        live.unlink()


@pytest.mark.parametrize("database", ["app.db", "notes.data"])
@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_what_an_app_wrote_to_a_database_is_there_at_each_later_start(tmp_path: Path, laid_out: LaidOut, database: str, mode: str) -> None:
    repository = tmp_path / "version"
    _left_by_a_killed_app(repository, database, mode)
    assert len([*repository.iterdir()]) == 2
    for start in range(3):
        work = laid_out(repository)
        assert not (work / database).is_symlink()
        assert _rows(work / database) == ["seed"] * 500 + ["own"] * 300 * start
        _write(work / database, "own", 300)


def test_a_journal_that_the_app_left_is_never_replaced(tmp_path: Path, laid_out: LaidOut) -> None:
    names = ("a.db-wal", "a.db-journal", "a.db-shm", "a.duckdb.wal", "b.sqlite-wal")
    repository = written(tmp_path / "version", {**dict.fromkeys((*names, "a.db", "a.duckdb"), "1"), "my-journal": "1", "x.wal": "1"})
    work = laid_out(repository)
    there = {"a.db": "1", "a.duckdb": "1", "my-journal": "1", "x.wal": "1"} | dict.fromkeys(names[:-1], "1")
    assert texts(work) == there
    for name in names[:-1]:
        (work / name).unlink()
    written(work, {"a.db-journal": "own"})
    written(repository, {**dict.fromkeys((*names, "a.db", "a.duckdb"), "2"), "my-journal": "2", "x.wal": "2"})
    assert texts(laid_out(repository)) == {"a.db": "1", "a.duckdb": "1", "a.db-journal": "own", "my-journal": "2", "x.wal": "2"}


def test_a_journal_of_a_database_that_the_app_removed_is_not_replayed_over_a_new_copy(tmp_path: Path, laid_out: LaidOut) -> None:
    repository = written(tmp_path / "version", {"app.db": "1"})
    work = laid_out(repository)
    (work / "app.db").rename(work / "app.db-wal")
    assert texts(laid_out(repository)) == {"app.db": "1"}


@pytest.mark.parametrize("next_one", [{"page.html": "2"}, {"notes.data": "2"}])
def test_a_database_with_a_journal_of_the_app_stays_whatever_its_name(tmp_path: Path, laid_out: LaidOut, next_one: dict[str, str]) -> None:
    """All that the app wrote is in the journal; the database itself is still as the version brought it."""
    _left_by_a_killed_app(tmp_path / "left", "notes.data", "wal")
    (tmp_path / "first").mkdir()
    shutil.copyfile(tmp_path / "left/notes.data", tmp_path / "first/notes.data")
    work = laid_out(tmp_path / "first")
    shutil.copyfile(tmp_path / "left/notes.data-wal", work / "notes.data-wal")
    laid_out(written(tmp_path / "second", next_one))
    assert _rows(work / "notes.data") == ["seed"] * 500


def test_a_start_that_dies_between_a_journal_and_its_database_copies_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, laid_out: LaidOut
) -> None:
    repository = written(tmp_path / "version", {"app.db": "1", "app.db-wal": "1"})
    copy, copied = shutil.copyfile, list[str]()

    def dies_later(source: str, target: str) -> None:
        if copied:
            raise KeyboardInterrupt
        copied.append(copy(source, target))

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", dies_later)
        with pytest.raises(KeyboardInterrupt):
            laid_out(repository)
    written(repository, {"app.db": "2", "app.db-wal": "2"})
    assert texts(laid_out(repository)) == {"app.db": "2", "app.db-wal": "2"}


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_journal_that_an_earlier_version_linked_is_a_file_or_gone(tmp_path: Path, laid_out: LaidOut, is_changed: bool) -> None:
    """SQLite opens no database beside such a link, so that the app could not use it."""
    repository, work = tmp_path / "version", tmp_path / "home/repository"
    _left_by_a_killed_app(repository, "app.db", "wal")
    work.mkdir(parents=True)
    shutil.copyfile(repository / "app.db", work / "app.db")
    if is_changed:  # by something that opens it all the same
        connection = sqlite3.connect(work / "app.db")
        connection.execute("create table notes (id integer primary key, text)")
        connection.close()
        _write(work / "app.db", "own", 1)
    (work / "app.db-wal").symlink_to(repository / "app.db-wal")
    laid_out(repository)
    assert _rows(work / "app.db") == (["own"] if is_changed else ["seed"] * 500)
