"""A SQLite file that is damaged, missing, or on a full disk: the errors, and the recovery."""

import asyncio
import shutil
from pathlib import Path

import pytest
from sqlalchemy import text

from engine.store.connection.sqlite_files import damages_of
from engine.store.database import Database, UnusableDatabaseError, migrate
from tests.disks import fill, tiny_disk
from toolagent.core.failures import StoreUnwritableError


def overwrite(file: Path, start: int) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:start] + b"\xff" * (len(content) - start))


async def check_until_it_fails(database: Database) -> None:
    """Check until a full disk refuses a write; the first ones may fit into the journal."""
    for _ in range(2000):
        await database.check()


@pytest.fixture
def file(empty_database: Path, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(empty_database, tmp_path / "tool-agent.db"))


@pytest.mark.parametrize("start", [0, 4096])
async def test_a_damaged_file_is_named_with_what_to_do_at_the_start_and_while_running(file: Path, tmp_path: Path, start: int) -> None:
    overwrite(file, start)
    url = f"sqlite+aiosqlite:///{file}"
    with pytest.raises(UnusableDatabaseError) as refusal:
        await asyncio.to_thread(migrate, url, tmp_path / "lock")
    database = Database(url)
    with pytest.raises(StoreUnwritableError) as failure:
        await database.check()
    for said in (str(refusal.value), str(failure.value)):
        assert str(file) in said
        assert "malformed" in said
        assert "Backup and restore" in said
    assert failure.value.cause == "damaged"
    assert str(file) not in failure.value.told
    assert all("malformed" in line for line in damages_of(file))
    await database.close()


@pytest.mark.parametrize("ending", ["", "-wal"])
async def test_a_file_that_was_removed_under_the_service_is_said_and_nothing_counts_as_written(file: Path, ending: str) -> None:
    database = Database(f"sqlite+aiosqlite:///{file}")
    await database.check()
    file.with_name(file.name + ending).unlink()
    with pytest.raises(StoreUnwritableError) as failure:
        await database.check()
    assert failure.value.cause == "moved"
    await database.close()


async def test_a_full_disk_is_said_and_when_there_is_room_it_goes_on(empty_database: Path, tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "tiny", "4m") as disk:
        database = Database(f"sqlite+aiosqlite:///{shutil.copyfile(empty_database, disk / 'full.db')}")
        await database.check()
        filler = disk / "filler"
        fill(filler)
        with pytest.raises(StoreUnwritableError) as failure:
            await check_until_it_fails(database)
        assert failure.value.cause == "disk_full"
        filler.unlink()
        await database.check()
        async with database.read() as connection:
            assert (await connection.execute(text("PRAGMA integrity_check"))).scalar_one() == "ok"
        await database.close()
