"""The content store."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.store.database import Database
from engine.store.files import FileStore
from toolagent.core.failures import FileTooLargeError


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def test_the_same_bytes_and_name_are_the_same_file(database: Database, tmp_path: Path) -> None:
    files = FileStore(database, tmp_path / "content", 100)
    first = await files.put(chunks(b"ab", b"c"), "a.png")
    assert await files.put(chunks(b"abc"), "a.png") == first
    other = await files.put(chunks(b"abc"), "b.png")
    assert other.file_id != first.file_id
    assert files.path(other) == files.path(first)
    assert files.path(first).read_bytes() == b"abc"
    assert (first.media_type, first.size) == ("image/png", 3)


async def test_a_file_that_is_too_large_leaves_nothing_behind(database: Database, tmp_path: Path) -> None:
    files = FileStore(database, tmp_path / "content", 3)
    with pytest.raises(FileTooLargeError):
        await files.put(chunks(b"ab", b"cd"), "a")
    assert list((tmp_path / "content").iterdir()) == []


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("a\\b\\c.txt", "c.txt"),
        ("..", "file"),
        ("", "file"),
        ("x\x00\n.txt", "x.txt"),
        ("图.png", "图.png"),
    ],
)
async def test_a_name_never_is_a_path(database: Database, tmp_path: Path, said: str, kept: str) -> None:
    files = FileStore(database, tmp_path / "content", 100)
    assert (await files.put(chunks(b"x"), said)).name == kept


async def test_a_very_long_name_keeps_its_ending(database: Database, tmp_path: Path) -> None:
    files = FileStore(database, tmp_path / "content", 100)
    file = await files.put(chunks(b"x"), "长" * 400 + ".png")
    copy = await files.materialise(file, tmp_path / "in")
    assert copy.suffix == ".png"
    assert copy.read_bytes() == b"x"


async def test_a_tool_cannot_change_a_stored_file_through_its_copy(database: Database, tmp_path: Path) -> None:
    files = FileStore(database, tmp_path / "content", 100)
    file = await files.put(chunks(b"original"), "a.txt")
    (await files.materialise(file, tmp_path / "in")).write_bytes(b"changed")
    assert files.path(file).read_bytes() == b"original"


async def test_many_uploads_of_the_same_bytes_at_once_are_one_file(database: Database, tmp_path: Path) -> None:
    files = FileStore(database, tmp_path / "content", 100)
    stored = await asyncio.gather(*(files.put(chunks(b"same"), "a.txt") for _ in range(10)))
    assert len({file.file_id for file in stored}) == 1


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
async def test_only_a_regular_file_is_taken_in(database: Database, tmp_path: Path, kind: str) -> None:
    files, path = FileStore(database, tmp_path / "content", 100), tmp_path / "named"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "test.db")
    async with asyncio.timeout(10):
        with pytest.raises(OSError, match="named"):
            await files.put_file(path)


async def test_a_file_of_this_machine_is_taken_in(database: Database, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"abc")
    files = FileStore(database, tmp_path / "content", 100)
    assert files.path(await files.put_file(tmp_path / "a.txt")).read_bytes() == b"abc"
