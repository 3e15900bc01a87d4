"""Where the settings say that files are kept."""

from pathlib import Path

import pytest

from engine.store.database import Database
from workers.content import content_of
from workers.failures import CannotRun
from workers.settings import Settings
from workers.state import owned_state


async def test_a_service_whose_store_has_no_keys_does_not_start(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path, content_store="s3", s3_bucket="files")
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'test.db'}")
    with owned_state(tmp_path) as state, pytest.raises(CannotRun, match="TOOL_AGENT_SECRET_S3_ACCESS_KEY_ID"):
        content_of(database, settings, state)
    await database.close()
