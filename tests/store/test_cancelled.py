"""Whoever is cancelled gives its connection back before it has ended, and breaks no commit in two."""

import asyncio

import anyio
import pytest
from sqlalchemy import event, text
from sqlalchemy.pool import QueuePool

from engine.store.database import Database


def _in_use(database: Database) -> int:
    pool = database._engine.pool
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


async def test_a_commit_that_has_begun_is_waited_for(database: Database) -> None:
    async def write() -> None:
        async with database.write() as connection:
            await connection.execute(text("CREATE TABLE while_cancelled (a INTEGER)"))

    writing = asyncio.create_task(write())
    event.listen(database._engine.sync_engine, "commit", lambda _: writing.cancel(), once=True)
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert _in_use(database) == 0
    async with database.write() as connection:
        await connection.execute(text("DROP TABLE while_cancelled"))
