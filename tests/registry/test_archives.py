"""Packing a tool's project."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from engine.registry.archives import NotPackedError, ProjectArchives, packed
from engine.store.database import Database
from tests.registry.importing import files_of


def project(folder: Path) -> Path:
    (folder / "sub").mkdir(parents=True)
    (folder / "main.py").write_text("print(1)", "utf-8")
    (folder / "sub" / "other.py").write_text("print(2)", "utf-8")
    for left_out in (".venv", "__pycache__", ".git", "node_modules"):
        (folder / left_out).mkdir()
        (folder / left_out / "x").write_text("x", "utf-8")
    return folder


def test_an_archive_is_the_same_wherever_and_whenever_it_is_made(tmp_path: Path) -> None:
    first, second = project(tmp_path / "a"), project(tmp_path / "b")
    os.utime(second / "main.py", (1, 1))
    assert packed(first) == packed(second)
    with tarfile.open(fileobj=io.BytesIO(packed(first))) as archive:
        assert archive.getnames() == ["main.py", "sub/other.py"]
        assert {(member.mtime, member.uid, member.uname) for member in archive} == {(0, 0, "")}


def test_a_link_that_leads_out_is_refused_and_one_that_stays_becomes_its_file(tmp_path: Path) -> None:
    folder = project(tmp_path / "a")
    (folder / "inside.py").symlink_to("main.py")
    with tarfile.open(fileobj=io.BytesIO(packed(folder))) as archive:
        assert all(member.isreg() for member in archive)
    (folder / "outside").symlink_to("/etc/passwd")
    with pytest.raises(NotPackedError):
        packed(folder)


def test_a_folder_that_is_too_large_is_refused(tmp_path: Path) -> None:
    folder = project(tmp_path / "a")
    with (folder / "large").open("wb") as large:
        large.truncate(33 * 1_048_576)
    with pytest.raises(NotPackedError):
        packed(folder)


async def test_a_folder_is_packed_again_when_it_changed(database: Database, tmp_path: Path) -> None:
    folder, archives = project(tmp_path / "a"), ProjectArchives(files_of(database, tmp_path))
    first = await archives.content_of(folder, "ns:a")
    assert await archives.content_of(folder, "ns:a") == first
    (folder / "main.py").write_text("print(3) # changed", "utf-8")
    assert await archives.content_of(folder, "ns:a") != first
    assert await archives.content_of(tmp_path / "nothing", "ns:a") is None
