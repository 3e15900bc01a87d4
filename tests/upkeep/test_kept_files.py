"""The hourly sweep of files."""

import asyncio
from datetime import timedelta
from pathlib import Path

import structlog
from sqlalchemy import update

from engine.registry.departures import departures_of
from engine.store.clock import database_time
from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.hosts import HostClaim, HostTable
from engine.store.tables import hosts as host_rows
from engine.upkeep.removal.kept_files import Retention, sweeping_files


async def test_the_hourly_sweep_forgets_hosts_that_never_came_back(sqlite_url: str, tmp_path: Path) -> None:
    database = Database(sqlite_url)
    hosts = HostTable(database, 3600.0)
    await hosts.claim(HostClaim("old", "a", "somewhere", {}))
    async with database.write() as connection:
        await connection.execute(update(host_rows).values(seen_at=database_time(-timedelta(days=8))))
    with structlog.testing.capture_logs() as said:
        async with (
            sweeping_files(
                database,
                FolderContent(tmp_path / "content"),
                tmp_path / "spool",
                Retention(files=timedelta(hours=26), calls=timedelta(hours=96), tasks=timedelta(hours=96), chats=timedelta(hours=96)),
                departures_of(database).forget,
                every_s=0.01,
            ),
            asyncio.timeout(60),
        ):
            while not any(one["event"] == "forgot_host" for one in said):  # noqa: ASYNC110 - the log has no event to wait for
                await asyncio.sleep(0.01)
    await database.close()
