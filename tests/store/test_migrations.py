"""The migrations make the tables that the code means."""

import asyncio
from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect
from sqlalchemy.ext.asyncio import create_async_engine

from engine.store.database import Database, migrate
from engine.store.tables import METADATA


async def test_the_migrated_database_has_the_tables_of_the_code(database: Database) -> None:
    def differences(connection: Connection) -> object:
        return compare_metadata(MigrationContext.configure(connection), METADATA)

    engine = create_async_engine(database.url)
    async with engine.connect() as connection:
        assert await connection.run_sync(differences) == []
    await engine.dispose()


async def test_migrating_twice_changes_nothing_and_many_at_once_wait_for_each_other(tmp_path: Path) -> None:
    url, lock = f"sqlite+aiosqlite:///{tmp_path / 'x.db'}", tmp_path / "lock"
    await asyncio.gather(*(asyncio.to_thread(migrate, url, lock) for _ in range(3)))
    engine = create_async_engine(url)
    async with engine.connect() as connection:
        names = await connection.run_sync(lambda sync: set(inspect(sync).get_table_names()))
    await engine.dispose()
    assert names == {*METADATA.tables, "alembic_version"}
