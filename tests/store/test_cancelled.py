"""Who is cancelled gives its connection back before it has ended."""

import anyio
import pytest
from sqlalchemy import text
from sqlalchemy.pool import QueuePool

from engine.store.database import Database


def _in_use(database: Database) -> int:
    pool = database._engine.pool  # pyright: ignore[reportPrivateUsage] - nobody else has a use for what is counted
    assert isinstance(pool, QueuePool)
    return pool.checkedout()


@pytest.mark.parametrize("kind", ["read", "write", "write_once"])
async def test_a_request_whose_client_left_has_given_its_connection_back_when_it_is_over(database: Database, kind: str) -> None:
    """Starlette ends it by a scope of anyio, which cancels again at every step."""
    with anyio.CancelScope() as scope:
        async with getattr(database, kind)() as connection:
            scope.cancel()
            await connection.execute(text("SELECT 1"))
    assert _in_use(database) == 0
