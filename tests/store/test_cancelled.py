"""A cancelled task returns its connection before it ends."""

import asyncio
import gc

import anyio
import pytest
from sqlalchemy import text
from sqlalchemy.pool import QueuePool

from engine.store.database import Database
from toolagent.core.failures import StoreUnavailableError


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


@pytest.mark.parametrize("turns", [0, 1, 3, 8, 20])
async def test_a_connection_is_made_and_given_back_whole_though_its_task_is_cancelled_meanwhile(database_url: str, turns: int) -> None:
    """A half-made connection warns when it is collected, or from a thread whose loop has ended, in a later test."""
    database = Database(database_url)
    task = asyncio.create_task(_one(database))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait((task,))
    assert _in_use(database) == 0
    await database.close()
    gc.collect()


async def test_closing_waits_for_transactions_that_are_under_way_and_lets_none_begin(database_url: str) -> None:
    database = Database(database_url)
    began = asyncio.Event()

    async def lasting() -> None:
        async with database.read() as connection:
            await connection.execute(text("SELECT 1"))
            began.set()
            await asyncio.sleep(0.1)

    task = asyncio.create_task(lasting())
    await began.wait()
    await database.close()
    assert task.done()
    with pytest.raises(StoreUnavailableError):
        await _one(database)
    gc.collect()


async def _one(database: Database) -> None:
    async with database.read() as connection:
        await connection.execute(text("SELECT 1"))
