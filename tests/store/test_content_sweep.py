"""Which files a sweep removes, which it never removes, and concurrent uses of a file."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from engine.store import tables
from engine.store.calls import CallTable
from engine.store.clock import now, timestamp
from engine.store.content.folder import FolderContent
from engine.store.content.incoming import STALE_S, incoming
from engine.store.content_removals import ContentRemovals
from engine.store.content_sweep import DAMAGED_AGE, Swept, sweep_files
from engine.store.database import Database
from engine.store.file_references import hold_files, holder_of_version, release_files
from engine.store.files import FileStore
from engine.store.rows.upserts import insert_new
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.records import CallRecord, StoredFile

RETENTION = timedelta(hours=26)


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@dataclass(frozen=True)
class Shelf:
    """A file store, and its sweep."""

    database: Database
    content: FolderContent
    files: FileStore
    folder: Path

    async def put_old(self, content: bytes, name: str = "a.txt") -> StoredFile:
        """A file that was not used for a month."""
        file = await self.files.put(chunks(content), name)
        async with self.database.write() as connection:
            long_ago = timestamp(now() - timedelta(days=30))
            await connection.execute(update(tables.files).where(tables.files.c.file_id == file.file_id).values(used_at=long_ago))
        return file

    async def sweep(self, removals: ContentRemovals | None = None) -> Swept:
        return await sweep_files(self.database, self.content, self.folder, RETENTION, removals)

    async def has(self, file: StoredFile) -> tuple[bool, bool]:
        """Whether it is known, and whether its bytes exist."""
        return await self.files.get(file.file_id) is not None, await self.content.size(file.sha256) is not None


@pytest.fixture
def shelf(database: Database, tmp_path: Path) -> Shelf:
    content = FolderContent(tmp_path / "content")
    return Shelf(database, content, FileStore(database, content, tmp_path / "content", 10_000), tmp_path / "content")


async def test_a_file_that_nobody_has_used_is_swept(shelf: Shelf) -> None:
    old, new = await shelf.put_old(b"old"), await shelf.files.put(chunks(b"new"), "new.txt")
    assert await shelf.sweep() == Swept(files=1, contents=1)
    assert await shelf.has(old) == (False, False)
    assert await shelf.has(new) == (True, True)


async def test_bytes_stay_while_another_file_has_them(shelf: Shelf) -> None:
    old, new = await shelf.put_old(b"same", "old.txt"), await shelf.files.put(chunks(b"same"), "new.txt")
    assert await shelf.sweep() == Swept(files=1)
    assert await shelf.has(old) == (False, True)
    assert await shelf.has(new) == (True, True)


def record(params: dict[str, str]) -> CallRecord:
    return CallRecord(
        call_id="call-1", tool_id="t", version="1.0.0", fingerprint="f", workflow_id="w", run_id="r", params={**params}, created_at=now()
    )


async def test_what_a_record_names_is_never_swept(shelf: Shelf) -> None:
    given, made = await shelf.put_old(b"given"), await shelf.put_old(b"made")
    result = ToolResult(status="success", result={"deep": [{"file": made.file_id}]})
    await CallTable(shelf.database).settle(record({"file": given.file_id}), result, ())
    assert await shelf.sweep() == Swept()
    assert await shelf.has(given) == await shelf.has(made) == (True, True)


async def test_what_a_call_names_that_runs_is_never_swept(shelf: Shelf) -> None:
    given = await shelf.put_old(b"given")
    await CallTable(shelf.database).mark_sent(record({"file": given.file_id}))
    assert await shelf.sweep() == Swept()


async def test_what_a_version_holds_is_swept_when_the_version_is_gone(shelf: Shelf) -> None:
    archive, holder = await shelf.put_old(b"archive"), holder_of_version("t", "1.0.0")
    async with shelf.database.write() as connection:
        await hold_files(connection, holder, (archive.file_id, "file_" + "0" * 32))
    assert await shelf.sweep() == Swept()
    async with shelf.database.write() as connection:
        await release_files(connection, holder)
    assert await shelf.sweep() == Swept(files=1, contents=1)


async def test_a_file_that_does_not_exist_is_not_held(shelf: Shelf) -> None:
    await CallTable(shelf.database).settle(record({"file": "file_" + "0" * 32}), ToolResult(status="success"), ())
    async with shelf.database.read() as connection:
        assert (await connection.execute(select(tables.file_references))).all() == []


async def test_bytes_that_no_file_has_are_removed_once_they_are_old(shelf: Shelf) -> None:
    async with incoming(shelf.folder, chunks(b"left by a crash"), 100) as arrived:
        await shelf.content.put(arrived)
    assert await shelf.sweep() == Swept()
    path = shelf.folder / arrived.sha256[:2] / arrived.sha256
    old = (now() - timedelta(hours=3)).timestamp()
    os.utime(path, (old, old))
    assert await shelf.sweep() == Swept(contents=1)
    assert await shelf.content.size(arrived.sha256) is None


async def test_what_never_came_in_as_a_whole_is_removed(shelf: Shelf) -> None:
    shelf.folder.mkdir()
    for name, age_s in (("old", STALE_S + 60), ("new", 0)):
        (shelf.folder / f".incoming-{name}").write_bytes(b"half")
        moment = now().timestamp() - age_s
        os.utime(shelf.folder / f".incoming-{name}", (moment, moment))
    assert await shelf.sweep() == Swept(incoming=1)


async def test_several_hosts_sweep_at_once(shelf: Shelf) -> None:
    old = [await shelf.put_old(f"{number}".encode()) for number in range(20)]
    swept = await asyncio.gather(*(shelf.sweep() for _ in range(4)))
    assert sum(one.files for one in swept) == 20
    assert {await shelf.has(file) for file in old} == {(False, False)}


class Interrupted(FolderContent):
    """A store in which something else happens just before bytes are removed."""

    def __init__(self, folder: Path, meanwhile: Callable[[], AsyncIterator[None]]) -> None:
        super().__init__(folder)
        self._meanwhile = meanwhile

    async def delete(self, sha256: str) -> None:
        during = self._meanwhile()
        await anext(during)
        await super().delete(sha256)


async def test_bytes_that_are_put_in_while_they_are_removed_are_there_afterwards(shelf: Shelf) -> None:
    old = await shelf.put_old(b"wanted again")
    putting: list[asyncio.Task[StoredFile]] = []
    named = asyncio.Event()

    async def put() -> StoredFile:
        return await shelf.files.put(chunks(b"wanted again"), "a.txt")

    async def meanwhile() -> AsyncIterator[None]:
        putting.append(asyncio.create_task(put()))
        while await shelf.files.get(old.file_id) is None:  # noqa: ASYNC110 - a database has no events
            await asyncio.sleep(0.01)
        named.set()
        yield

    interrupted = Interrupted(shelf.folder, meanwhile)
    async with asyncio.timeout(30):
        assert await sweep_files(shelf.database, interrupted, shelf.folder, RETENTION) == Swept(files=1, contents=1)
        assert named.is_set()
        assert (await putting[0]).file_id == old.file_id
    assert await shelf.has(old) == (True, True)


async def test_a_sweep_leaves_bytes_alone_that_got_a_name_after_it_had_chosen_them(shelf: Shelf) -> None:
    file = await shelf.files.put(chunks(b"named"), "a.txt")
    assert await ContentRemovals(shelf.database).remove(shelf.content, file.sha256) is False
    assert await shelf.has(file) == (True, True)
    assert await ContentRemovals(shelf.database).unfinished() == ()


async def test_a_file_that_a_call_uses_is_not_swept_any_more(shelf: Shelf) -> None:
    old = await shelf.put_old(b"used")
    assert await shelf.files.use(old.file_id) == old
    assert await shelf.sweep() == Swept()


async def test_calls_and_a_sweep_at_once_agree_on_which_files_there_are(shelf: Shelf) -> None:
    old = [await shelf.put_old(f"{number}".encode()) for number in range(30)]
    sweeping = asyncio.create_task(shelf.sweep())
    used = await asyncio.gather(*(shelf.files.use(file.file_id) for file in old))
    swept = await sweeping
    there = [file for file in used if file is not None]
    assert swept.files == len(old) - len(there)
    assert {await shelf.has(file) for file in there} <= {(True, True)}


async def test_what_a_sweep_that_died_had_begun_is_finished_by_the_next(shelf: Shelf) -> None:
    sha256 = hashlib.sha256(b"begun").hexdigest()
    async with incoming(shelf.folder, chunks(b"begun"), 100) as arrived:
        await shelf.content.put(arrived)
    async with shelf.database.write() as connection:
        await insert_new(connection, tables.content_removals, [{"sha256": sha256, "token": "of a dead sweep"}])
    old = (now() - timedelta(hours=3)).timestamp()
    os.utime(shelf.folder / sha256[:2] / sha256, (old, old))
    removals = ContentRemovals(shelf.database, patience_s=0.2)
    assert await shelf.sweep(removals) == Swept(contents=1)
    assert await removals.unfinished() == ()


async def test_damaged_bytes_are_kept_for_a_while_and_then_swept(shelf: Shelf) -> None:
    files = [await shelf.files.put(chunks(content), "a.txt") for content in (b"old", b"new")]
    for file in files:
        await shelf.content.set_aside(file.sha256)
    long_ago = (now() - DAMAGED_AGE - timedelta(hours=1)).timestamp()
    os.utime(shelf.folder / "damaged" / files[0].sha256, (long_ago, long_ago))
    assert await shelf.sweep() == Swept(damaged=1)
    assert [await shelf.content.is_set_aside(file.sha256) for file in files] == [False, True]
