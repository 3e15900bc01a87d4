"""The connection to the database: what it says when it cannot be had."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from engine.store.database import Database, UnusableDatabaseError, migrate
from toolagent.core.failures import StoreUnavailableError

_MORE_THAN_THE_POOL_HAS = 50


async def test_a_database_without_a_free_connection_is_unavailable(empty_database: Path) -> None:
    database = Database(f"sqlite+aiosqlite:///{empty_database}", pool_wait_s=0.05)
    with pytest.raises(StoreUnavailableError):
        await _take_all(database)
    await database.check()
    await database.close()


async def _take_all(database: Database) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(_MORE_THAN_THE_POOL_HAS):
            await stack.enter_async_context(database.read())


@pytest.mark.parametrize(
    "url",
    [
        "no url",
        "postgresql+nodriver://user:sesame@127.0.0.1/x",
        "postgresql+asyncpg://user:sesame@127.0.0.1:1/x",
        "sqlite:///plain.db",
        "sqlite+aiosqlite:////nowhere/sesame/x.db",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_repeating_it(url: str, tmp_path: Path) -> None:
    with pytest.raises(UnusableDatabaseError) as refusal:
        migrate(url, tmp_path / "lock")
    assert "sesame" not in str(refusal.value)
