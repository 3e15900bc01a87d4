"""The content store."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from engine.store import tables
from engine.store.clock import now, timestamp
from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.files import FileStore
from tests.disks import file_size_limit, tiny_disk
from toolagent.contracts.records import StoredFile
from toolagent.core.failures import ContentDamagedError, FileTooLargeError, StoreFullError


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def content_of(files: FileStore, file: StoredFile) -> bytes:
    return b"".join([piece async for piece in files.read(file)])


async def test_the_same_bytes_and_name_are_the_same_file(database: Database, tmp_path: Path) -> None:
    files = FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "content", 100)
    first = await files.put(chunks(b"ab", b"c"), "a.png")
    assert await files.put(chunks(b"abc"), "a.png") == first
    other = await files.put(chunks(b"abc"), "b.png")
    assert other.file_id != first.file_id
    assert other.sha256 == first.sha256
    assert await content_of(files, first) == await content_of(files, other) == b"abc"
    assert (first.media_type, first.size) == ("image/png", 3)


async def test_a_file_that_is_too_large_leaves_nothing_behind(database: Database, tmp_path: Path) -> None:
    files = FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "content", 3)
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
    files = FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "content", 100)
    assert (await files.put(chunks(b"x"), said)).name == kept


async def test_a_very_long_name_keeps_its_ending(database: Database, tmp_path: Path) -> None:
    files = FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "content", 100)
    file = await files.put(chunks(b"x"), "长" * 400 + ".png")
    copy = await files.materialise(file, tmp_path / "in")
    assert copy.suffix == ".png"
    assert copy.read_bytes() == b"x"


async def test_a_tool_cannot_change_a_stored_file_through_its_copy(database: Database, tmp_path: Path) -> None:
    files = FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "content", 100)
    file = await files.put(chunks(b"original"), "a.txt")
    (await files.materialise(file, tmp_path / "in")).write_bytes(b"changed")
    assert await content_of(files, file) == b"original"


async def test_many_uploads_of_the_same_bytes_at_once_are_one_file(database: Database, tmp_path: Path) -> None:
    files = FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "content", 100)
    stored = await asyncio.gather(*(files.put(chunks(b"same"), "a.txt") for _ in range(10)))
    assert len({file.file_id for file in stored}) == 1


async def test_a_copy_of_damaged_bytes_is_not_handed_out(database: Database, tmp_path: Path) -> None:
    files = FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "content", 100)
    file = await files.put(chunks(b"original"), "a.txt")
    (tmp_path / "content" / file.sha256[:2] / file.sha256).write_bytes(b"0riginal")
    for _ in range(2):
        with pytest.raises(ContentDamagedError, match=f"{file.file_id}.*POST /files"):
            await files.materialise(file, tmp_path / "in")
    assert not list((tmp_path / "in").rglob("*.txt"))
    assert await files.put(chunks(b"original"), "a.txt") == file
    assert (await files.materialise(file, tmp_path / "in")).read_bytes() == b"original"


async def test_a_file_that_is_used_is_used_from_then_on(database: Database, tmp_path: Path) -> None:
    files = FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "content", 100)
    file = await files.put(chunks(b"x"), "a.txt")
    await age(database, file.file_id)
    assert await files.use(file.file_id) == file
    async with database.read() as connection:
        assert (await connection.execute(select(tables.files.c.used_at))).scalar_one() > timestamp(now() - timedelta(minutes=5))


async def age(database: Database, file_id: str) -> None:
    async with database.write() as connection:
        long_ago = timestamp(now() - timedelta(days=30))
        await connection.execute(update(tables.files).where(tables.files.c.file_id == file_id).values(used_at=long_ago))


def names_of_files(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


async def names_in(database: Database) -> list[str]:
    async with database.read() as connection:
        return list((await connection.execute(select(tables.files.c.name))).scalars())


async def test_a_full_disk_is_named_and_nothing_is_left_behind(database: Database, tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "tiny", "256k") as disk:
        files = FileStore(database, FolderContent(disk), disk, 10_000_000)
        small = await files.put(chunks(b"x" * 50_000), "small.bin")
        with pytest.raises(StoreFullError):
            await files.put(chunks(*(bytes([number]) * 65_536 for number in range(6))), "large.bin")
        assert names_of_files(disk) == [small.sha256]
        assert await content_of(files, small) == b"x" * 50_000
        assert await names_in(database) == ["small.bin"]


async def test_a_used_up_quota_is_a_full_disk(database: Database, tmp_path: Path) -> None:
    files = FileStore(database, FolderContent(tmp_path / "content"), tmp_path / "content", 10_000_000)
    with file_size_limit(100_000), pytest.raises(StoreFullError):
        await files.put(chunks(b"x" * 99_999, b"yy"), "large.bin")
    assert names_of_files(tmp_path / "content") == []
    assert await names_in(database) == []
