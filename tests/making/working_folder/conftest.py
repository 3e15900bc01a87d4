"""A home with a working folder, and what is in it."""

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.making.python_projects.packing import WORKING_FOLDER

LaidOut = Callable[[Path], Path]


@pytest.fixture
def laid_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LaidOut:
    """Lays out a repository in the home `home` of `tmp_path`."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    lay_out = runpy.run_path(str(WORKING_FOLDER))["laid_out"]
    return lambda repository: Path(lay_out(str(repository)))


def texts(work: Path) -> dict[str, str]:
    return {path.relative_to(work).as_posix(): path.read_text() for path in work.rglob("*") if path.is_file()}
