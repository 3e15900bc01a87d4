"""The content store of the settings."""

from pathlib import Path

import pytest

from engine.store.database import Database
from workers.failures import CannotRun
from workers.settings.kept import ContentSettings
from workers.state.content import content_of
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
