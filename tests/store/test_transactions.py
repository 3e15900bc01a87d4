"""A transaction given as one function is applied completely or not at all, whatever happens to its caller."""

import asyncio
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest
from sqlalchemy import func, literal, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.connection.visits import VISITORS
from engine.store.database import Database
from engine.store.rows.upserts import upsert
from engine.store.tables import groups
from toolagent.core.failures import StoreUnavailableError


async def _write(connection: AsyncConnection, group_id: str = "one") -> int:
    await upsert(connection, groups, {"group_id": group_id, "document": "{}"})
    return (await connection.execute(select(func.count()).select_from(groups))).scalar_one()


async def _count(database: Database) -> int | None:
    return await database.scalar(select(func.count()).select_from(groups))


async def test_it_is_committed_and_gives_what_its_function_returns(database: Database) -> None:
    assert await database.transact(_write) == 1
    assert await _count(database) == 1


async def test_it_leaves_nothing_where_its_function_raises_and_others_may_write_then(database: Database) -> None:
    async def fail(connection: AsyncConnection) -> None:
        await _write(connection)
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        await database.transact(fail)
    assert await _count(database) == 0
    assert await database.transact(_write) == 1
    async with database.write() as connection:
        assert await _write(connection, "two") == 2


async def test_after_a_commit_that_fails_the_next_transaction_has_a_connection_without_it(sqlite_url: str) -> None:
    database = Database(sqlite_url)

    async def break_a_promise(connection: AsyncConnection) -> None:
        """SQLite refuses the commit, and its transaction stays open."""
        await _write(connection)
        await connection.execute(text("CREATE TABLE ours (id INTEGER PRIMARY KEY)"))
        await connection.execute(text("CREATE TABLE theirs (id INTEGER REFERENCES ours (id) DEFERRABLE INITIALLY DEFERRED)"))
        await connection.execute(text("INSERT INTO theirs VALUES (1)"))

    with pytest.raises(IntegrityError, match="FOREIGN KEY"):
        await database.transact(break_a_promise)
    assert await _count(database) == 0
    assert await database.transact(_write) == 1
    await database.close()


async def test_who_is_cancelled_meanwhile_has_waited_for_its_end(database: Database) -> None:
    """Half done, it would keep others from writing."""
    task = asyncio.create_task(database.transact(_write))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait((task,))
    assert task.cancelled()
    async with database.write() as connection:
        assert await _write(connection, "two") in {1, 2}


async def test_on_sqlite_all_of_it_is_made_outside_of_the_event_loop(sqlite_url: str) -> None:
    database = Database(sqlite_url)

    async def made_in(connection: AsyncConnection) -> set[int]:
        before = threading.get_ident()
        await _write(connection)
        return {before, threading.get_ident()}

    threads = await database.transact(made_in)
    await database.close()
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_who_is_cancelled_in_a_query_has_waited_for_its_end(database: Database) -> None:
    """Closing does not take the connection from it."""
    task = asyncio.create_task(_count(database))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait((task,))
    assert task.cancelled()
    assert await _count(database) == 0


@pytest.mark.parametrize("fails", [False, True])
async def test_a_closed_database_has_its_file_no_longer_open(sqlite_url: str, *, fails: bool) -> None:
    async def work(connection: AsyncConnection) -> None:
        await _write(connection)
        if fails:
            raise ValueError("wrong")

    database = Database(sqlite_url)
    with pytest.raises(ValueError, match="wrong") if fails else nullcontext():
        await database.transact(work)
    await _count(database)
    assert database.file is not None
    if not fails:
        assert _opened(database.file)
    await database.close()
    assert _opened(database.file) == []


def _opened(file: Path) -> list[str]:
    links = [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    return [str(link) for link in links if link == file.resolve()]


async def test_a_database_may_be_closed_again(database: Database) -> None:
    await database.transact(_write)
    await database.close()
    await database.close()


async def test_on_sqlite_it_may_wait_for_nothing_but_its_statements(sqlite_url: str) -> None:
    """Its thread has no event loop."""
    database = Database(sqlite_url)

    async def waits(connection: AsyncConnection) -> None:
        await _write(connection)
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waits for something else"):
        await database.transact(waits)
    assert await _count(database) == 0
    await database.close()


_FROM = select(literal(1).label("x")).cte(recursive=True)
_SLOW = select(func.count()).select_from(_FROM.union_all(select(_FROM.c.x + 1).where(_FROM.c.x < 2_000_000)))


async def test_who_waits_for_a_connection_on_sqlite_waits_no_longer_than_it_may_and_can_be_cancelled(sqlite_url: str) -> None:
    database = Database(sqlite_url, pool_wait_s=0.1)
    slow = [asyncio.create_task(database.scalar(_SLOW)) for _ in range(VISITORS - 1)]
    await asyncio.sleep(0)
    with pytest.raises(StoreUnavailableError, match="busy"):
        await _count(database)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await _count(database)
    assert not any(task.done() for task in slow)
    await asyncio.gather(*slow)
    assert await _count(database) == 0
    await database.close()
