"""A working folder of copies and links: an app that writes beside its code writes to the home of its tool."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.making.mcp_servers.launchers import Start, launcher_of_server
from engine.making.python_projects.packing import BRIDGE, WORKING_FOLDER
from tests.making.inspection.conftest import written

_WRITES = """
import os
from pathlib import Path

def main():
    for here in (os.path.abspath(__file__), Path(__file__).resolve()):
        with Path(here).parents[1].joinpath("server.log").open("a") as log:
            log.write("x")
"""


@pytest.mark.parametrize("start", [Start("script", "notes", "notes.server:main"), Start("file", "run.py", "notes/run.py")])
def test_a_server_that_writes_beside_its_code_writes_in_its_home(tmp_path: Path, start: Start) -> None:
    files = {"notes/__init__.py": "", "notes/server.py": _WRITES, "notes/run.py": "from notes.server import main\nmain()\n"}
    project, home = written(tmp_path / "project", {"main.py": launcher_of_server(start, "", "")}), tmp_path / "home"
    for folder in ("site", "repository"):
        written(project / folder, files)
    for path in (WORKING_FOLDER, BRIDGE):
        (project / path.name).write_text(path.read_text())
    there = sorted(project.rglob("*"))
    subprocess.run([sys.executable, "-BS", "main.py"], cwd=project, env={"HOME": str(home)}, check=True, timeout=30)
    assert sorted(project.rglob("*")) == there
    assert [path.read_text() for path in home.rglob("server.log")] == ["xx"]


def test_code_is_that_of_the_version_that_runs_and_what_the_app_made_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    first = written(tmp_path / "first", {"changed.py": "1", "spoilt.py": "1", "gone.py": "1", "page.html": "1"})
    second = written(tmp_path / "second", {"changed.py": "2", "spoilt.py": "1", "page.html": "2"})
    laid_out = runpy.run_path(str(WORKING_FOLDER))["laid_out"]
    work = Path(laid_out(str(first)))
    written(work, {"spoilt.py": "by the app", "own.py": "by the app"})
    assert laid_out(str(second)) == str(work)
    assert {path.name: path.read_text() for path in work.iterdir()} == {
        "changed.py": "2", "spoilt.py": "1", "own.py": "by the app", "page.html": "2",
    }  # fmt: skip


def test_what_is_behind_a_link_that_the_app_made_of_a_folder_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    repository = written(tmp_path / "version", {"app.py": "1", "data/seed.py": "1", "data/deep/seed.txt": "1"})
    laid_out = runpy.run_path(str(WORKING_FOLDER))["laid_out"]
    work = Path(laid_out(str(repository)))
    written(tmp_path / "kept", {"seed.py": "by the app"})
    shutil.rmtree(work / "data")
    (work / "data").symlink_to(tmp_path / "kept")
    (tmp_path / "kept/deep").mkdir()
    written(repository, {"app.py": "2", "data/seed.py": "2"})
    shutil.rmtree(repository / "data/deep")
    laid_out(str(repository))
    assert (work / "app.py").read_text() == "2"
    assert (tmp_path / "kept/seed.py").read_text() == "by the app"
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["deep", "seed.py"]


def test_what_an_app_opens_is_in_its_folder_and_only_large_files_are_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    repository = written(
        tmp_path / "version", {"theme.css": "1", "run.sh": "1", "set.ini": "1", "gone.txt": "1", "large.bin": "1" * (2 << 20)}
    )
    (repository / "run.sh").chmod(0o555)
    laid_out = runpy.run_path(str(WORKING_FOLDER))["laid_out"]
    work = Path(laid_out(str(repository)))
    outside = [path.name for path in work.iterdir() if not path.resolve().is_relative_to(work)]
    assert (outside, (work / "run.sh").stat().st_mode & 0o777) == (["large.bin"], 0o755)
    written(work, {"set.ini": "by the app"})
    (work / "theme.css").unlink()
    (work / "theme.css").symlink_to(repository / "theme.css")  # as versions did that were built before
    # The next version.
    written(repository, {"theme.css": "2", "set.ini": "2", "large.bin": "2"})
    (repository / "gone.txt").unlink()
    laid_out(str(repository))
    assert not any(path.is_symlink() for path in work.iterdir())
    assert {path.name: path.read_text() for path in work.iterdir()} == {
        "theme.css": "2",
        "run.sh": "1",
        "set.ini": "by the app",
        "large.bin": "2",
    }


def test_an_older_version_finds_its_folder_as_it_was_and_a_newer_one_what_was_written_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    repository = written(tmp_path / "version", {"app.py": "2", "lib/run.py": "2", "lib/page.html": "2", "app.db": "2", "set.ini": "2"})
    # As a version of before left it: links to its files, and what the app wrote.
    before = written(tmp_path / "work", {"app.db": "own", "set.ini": "own", "lib/notes.txt": "own", "data/one.txt": "own"})
    for name in ("app.py", "lib/run.py", "lib/page.html"):
        (before / name).symlink_to(tmp_path / "gone" / name)
    there = {path: path.is_symlink() for path in before.rglob("*")}
    laid_out = runpy.run_path(str(WORKING_FOLDER))["laid_out"]
    work = Path(laid_out(str(repository)))
    assert {path: path.is_symlink() for path in before.rglob("*")} == there
    names = ("app.py", "lib/run.py", "lib/page.html", "app.db", "set.ini", "lib/notes.txt", "data/one.txt")
    assert [(work / name).read_text() for name in names] == ["2", "2", "2", "own", "own", "own", "own"]
    (work / "data/two.txt").write_text("own")
    (work / "lib/notes.txt").unlink()
    laid_out(str(repository))
    assert (before / "data/two.txt").is_file()
    assert [(work / name).exists() for name in ("set.ini", "lib/notes.txt")] == [True, False]
    assert (work / "set.ini").read_text() == "own"
