"""The content stores: the suite, and their errors when they are full or away."""

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Generator
from datetime import timedelta
from functools import partial
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store
from sqlalchemy import delete, insert

from engine.store import tables
from engine.store.clock import now, timestamp
from engine.store.content import CONTENT_STORES
from engine.store.content.database import CHUNK
from engine.store.content.folder import FolderContent
from engine.store.content.incoming import Incoming, incoming, remove_stale
from engine.store.content.parts import ContentParts, S3Place, UnusableContentStoreError
from engine.store.content.s3 import S3Content
from engine.store.database import Database
from tests.disks import tiny_disk
from tests.s3 import S3Server, s3_server
from tests.store.content_suite import CHECKS, DAMAGE_CHECKS, ContentFailure, Damage, check_content_store
from toolagent.core.failures import ContentUnavailableError, StoreFullError, StoreUnavailableError


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Generator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


def parts_of(tmp_path: Path, database: Database, place: S3Place) -> ContentParts:
    secrets = {"S3_ACCESS_KEY_ID": place.access_key_id, "S3_SECRET_ACCESS_KEY": place.secret_access_key}
    return ContentParts(tmp_path / "content", database, secrets.get, place.bucket, place.prefix, place.endpoint, place.region)


async def one(content: bytes) -> AsyncIterator[bytes]:
    yield content


@pytest.mark.parametrize("kind", sorted(CONTENT_STORES.keys() - {"database"}))
async def test_every_store_keeps_what_is_promised(kind: str, tmp_path: Path, sqlite_url: str, s3: S3Server) -> None:
    database = Database(sqlite_url)
    await keeps_what_is_promised(kind, tmp_path, database, s3.make_bucket("conformance"))
    await database.close()


async def test_the_database_keeps_what_is_promised(tmp_path: Path, database: Database) -> None:
    await keeps_what_is_promised("database", tmp_path, database, S3Place("nowhere", "a", "b"))


async def keeps_what_is_promised(kind: str, tmp_path: Path, database: Database, place: S3Place) -> None:
    damage: dict[str, Damage] = {
        "folder": partial(write_to_folder, tmp_path / "content"),
        "database": partial(write_to_rows, database),
        "s3": partial(write_to_bucket, place),
    }
    await check_content_store(CONTENT_STORES[kind](parts_of(tmp_path, database, place)), tmp_path / "content", damage[kind])
    assert not list((tmp_path / "content").glob(".incoming-*"))


async def write_to_folder(folder: Path, sha256: str, content: bytes) -> None:
    await asyncio.to_thread((folder / sha256[:2] / sha256).write_bytes, content)


async def write_to_rows(database: Database, sha256: str, content: bytes) -> None:
    async with database.write() as connection:
        here = (tables.blob_chunks.c.sha256 == sha256, tables.blob_chunks.c.position >= 0)
        await connection.execute(delete(tables.blob_chunks).where(*here))
        pieces = [content[at : at + CHUNK] for at in range(0, max(len(content), 1), CHUNK)]
        rows = [{"sha256": sha256, "position": n, "content": piece, "stored_at": timestamp(now())} for n, piece in enumerate(pieces)]
        await connection.execute(insert(tables.blob_chunks), rows)


async def write_to_bucket(place: S3Place, sha256: str, content: bytes) -> None:
    bucket = S3Store(
        place.bucket,
        access_key_id=place.access_key_id,
        secret_access_key=place.secret_access_key,
        region=place.region,
        endpoint=place.endpoint or "",
        client_options={"allow_http": True},
    )
    await obstore.put_async(bucket, f"{place.prefix}/{sha256[:2]}/{sha256}", content)


class Forgetful(FolderContent):
    """A store that does not delete."""

    async def delete(self, sha256: str) -> None:
        pass


async def test_the_suite_finds_a_store_that_keeps_what_was_deleted(tmp_path: Path) -> None:
    with pytest.raises(ContentFailure, match=next(name for name in CHECKS if "forgets" in name)):
        await check_content_store(Forgetful(tmp_path), tmp_path, partial(write_to_folder, tmp_path))


class Trusting(FolderContent):
    """A store that does not verify what it finds."""

    async def put(self, content: Incoming) -> None:
        if await self.size(content.sha256) is None:
            await super().put(content)


async def test_the_suite_finds_a_store_that_keeps_damaged_bytes(tmp_path: Path) -> None:
    with pytest.raises(ContentFailure, match=next(name for name in DAMAGE_CHECKS if "replaces" in name)):
        await check_content_store(Trusting(tmp_path), tmp_path, partial(write_to_folder, tmp_path))


async def test_two_services_share_a_bucket_by_prefixes(tmp_path: Path, s3: S3Server) -> None:
    place = s3.make_bucket("shared")
    one_of_them = S3Content(place)
    other = S3Content(S3Place("shared", "a", "b", prefix="tool-agent/other", endpoint=place.endpoint))
    async with incoming(tmp_path, one(b"x"), 1) as content:
        await one_of_them.put(content)
        assert await one_of_them.size(content.sha256) == 1
        assert await other.size(content.sha256) is None
    assert [entry async for entry in other.entries()] == []


async def test_a_server_that_has_died_is_named_as_the_cause(tmp_path: Path) -> None:
    with s3_server(tmp_path) as server:
        store = S3Content(server.make_bucket("mortal"))
        async with incoming(tmp_path / "in", one(b"x"), 1) as content:
            await store.put(content)
            server.kill()
            with pytest.raises(ContentUnavailableError, match="mortal"):
                await store.put(content)
        with pytest.raises(ContentUnavailableError):
            _ = [chunk async for chunk in store.read(content.sha256)]


async def test_a_bucket_that_does_not_exist_is_named(tmp_path: Path, s3: S3Server) -> None:
    store = S3Content(S3Place("nowhere", "a", "b", endpoint=s3.endpoint))
    async with incoming(tmp_path, one(b"x"), 1) as content:
        with pytest.raises(ContentUnavailableError, match="TOOL_AGENT_S3_BUCKET"):
            await store.put(content)


@pytest.mark.parametrize(
    ("bucket", "secrets", "named"),
    [
        (None, {}, "TOOL_AGENT_S3_BUCKET"),
        ("b", {}, "TOOL_AGENT_SECRET_S3_ACCESS_KEY_ID"),
        ("b", {"S3_ACCESS_KEY_ID": "x"}, "TOOL_AGENT_SECRET_S3_SECRET_ACCESS_KEY"),
    ],
)
def test_what_is_missing_for_s3_is_named(
    tmp_path: Path, database: Database, bucket: str | None, secrets: dict[str, str], named: str
) -> None:
    with pytest.raises(UnusableContentStoreError, match=named):
        CONTENT_STORES["s3"](ContentParts(tmp_path, database, secrets.get, bucket))


def test_the_keys_are_not_in_what_is_printed() -> None:
    assert "hidden" not in repr(S3Place("b", "hidden-id", "hidden-key"))


async def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ContentUnavailableError, match="file/content"):
        async with incoming(tmp_path / "file" / "content", one(b"x"), 1):
            raise AssertionError("it came in")


async def test_a_database_that_is_away_is_named(tmp_path: Path) -> None:
    away = Database(f"sqlite+aiosqlite:///{tmp_path}/no/such/folder.db")
    store = CONTENT_STORES["database"](ContentParts(tmp_path, away, dict[str, str]().get))
    with pytest.raises(StoreUnavailableError):
        await store.put(Incoming(tmp_path / "x", "0" * 64, 1))
    await away.close()


def test_only_what_nobody_writes_to_any_more_is_removed_on_its_way_in(tmp_path: Path) -> None:
    (tmp_path / ".incoming-old").write_bytes(b"")
    assert remove_stale(tmp_path) == 0
    assert remove_stale(tmp_path, older_than_s=-1) == 1
    assert list(tmp_path.iterdir()) == []


def test_what_was_written_to_a_moment_before_the_clock_jumped_an_hour_stays(tmp_path: Path) -> None:
    (arriving := tmp_path / ".incoming-now").write_bytes(b"half")
    moment = time.time() - timedelta(hours=1).total_seconds() - 60
    os.utime(arriving, (moment, moment))
    assert remove_stale(tmp_path) == 0


async def test_a_full_database_is_named_and_keeps_nothing_of_the_file(empty_database: Path, tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "tiny", "4m") as disk:
        await asyncio.to_thread(shutil.copyfile, empty_database, disk / "full.db")
        database = Database(f"sqlite+aiosqlite:///{disk / 'full.db'}")
        store = CONTENT_STORES["database"](ContentParts(tmp_path, database, dict[str, str]().get))
        async with incoming(tmp_path / "in", one(b"x" * 8_000_000), 8_000_000) as content:
            with pytest.raises(StoreFullError):
                await store.put(content)
        assert await store.size(content.sha256) is None
        async with incoming(tmp_path / "in", one(b"small"), 100) as content:
            await store.put(content)
        assert await store.size(content.sha256) == 5
        await database.close()
