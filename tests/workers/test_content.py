"""Where the settings say that files are kept."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
import structlog
from sqlalchemy import update

from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.hosts import HostClaim, HostTable, database_time
from engine.store.tables import hosts as host_rows
from workers.failures import CannotRun
from workers.settings.kept import ContentSettings, RetentionSettings
from workers.state.content import content_of, sweeping
from workers.state.directory import owned_state


async def test_a_file_of_secrets_that_others_may_read_is_named_as_such_before_keys_are_missed_in_it(tmp_path: Path) -> None:
    settings = ContentSettings(content_store="s3", s3_bucket="files")
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'test.db'}")
    (tmp_path / "secrets").write_text("S3_ACCESS_KEY_ID=a\nS3_SECRET_ACCESS_KEY=b\n", "utf-8")
    (tmp_path / "secrets").chmod(0o644)
    with owned_state(tmp_path) as state, pytest.raises(CannotRun, match="chmod 600"):
        content_of(database, settings, state)
    await database.close()


async def test_a_service_whose_store_has_no_keys_does_not_start(tmp_path: Path) -> None:
    settings = ContentSettings(content_store="s3", s3_bucket="files")
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'test.db'}")
    with owned_state(tmp_path) as state, pytest.raises(CannotRun, match="TOOL_AGENT_SECRET_S3_ACCESS_KEY_ID"):
        content_of(database, settings, state)
    await database.close()


async def test_the_hourly_sweep_forgets_hosts_that_never_came_back(sqlite_url: str, tmp_path: Path) -> None:
    database = Database(sqlite_url)
    hosts = HostTable(database, 10.0)
    await hosts.claim(HostClaim("old", "a", "somewhere", {}))
    async with database.write() as connection:
        await connection.execute(update(host_rows).values(seen_at=database_time(connection, -timedelta(days=8))))
    with structlog.testing.capture_logs() as said:
        async with (
            sweeping(
                database,
                FolderContent(tmp_path / "content"),
                tmp_path / "spool",
                RetentionSettings(file_retention_hours=26, task_retention_hours=96),
                every_s=0.01,
            ),
            asyncio.timeout(30),
        ):
            while not any(one["event"] == "forgot_host" for one in said):  # noqa: ASYNC110 - the log has no event to wait for
                await asyncio.sleep(0.01)
    await database.close()
