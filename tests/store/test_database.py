"""The connection to the database: its errors, and its recovery."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from pathlib import Path

import pytest
from sqlalchemy import literal, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.database import Database, UnusableDatabaseError, migrate
from engine.store.rows.upserts import insert_new
from engine.store.tables import groups
from tests.postgres import PASSWORD, PostgresServer
from toolagent.core.failures import StoreUnavailableError

_MORE_THAN_THE_POOL_HAS = 50


async def test_a_database_without_a_free_connection_is_unavailable(database_url: str) -> None:
    database = Database(database_url, pool_size=3, pool_wait_s=0.05)
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
        "postgresql://user:sesame@127.0.0.1/x",
        "postgres://user:sesame@127.0.0.1/x",
        "postgresql+asyncpg://user:sesame@127.0.0.1:1/x",
        "postgresql+asyncpg://user:sesame@127.0.0.1:port/x",
        "postgresql+asyncpg://user:sesame@127.0.0.1:99999/x",
        "postgresql+asyncpg://user:sesame@127.0.0.1:1/x?sslmode=require",
        "postgresql+asyncpg://user:sesame@127.0.0.1:1/x?ssl=perhaps",
        "postgresql+asyncpg://user:sesame@nowhere.invalid/x",
        "sqlite:///plain.db",
        "sqlite+aiosqlite:////nowhere/x.db",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_repeating_it(url: str, tmp_path: Path) -> None:
    with pytest.raises(UnusableDatabaseError) as refusal:
        migrate(url, tmp_path / "lock")
    assert "sesame" not in str(refusal.value)


def test_a_wrong_password_a_missing_database_and_a_user_without_rights_are_told_apart(postgres: PostgresServer, tmp_path: Path) -> None:
    right = postgres.url("postgres")
    postgres.execute("DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN PASSWORD 'sesame'")
    remedies = {
        right.replace(PASSWORD, "wrong"): "password",
        postgres.url("nowhere"): "createdb",
        right.replace("agent:", "guest:"): "GRANT",
    }
    for url, remedy in remedies.items():
        with pytest.raises(UnusableDatabaseError) as refusal:
            migrate(url, tmp_path / "lock")
        assert remedy in str(refusal.value)
        assert PASSWORD not in str(refusal.value)


async def test_the_first_request_after_a_restart_succeeds(own_postgres: PostgresServer) -> None:
    database = Database(own_postgres.url("postgres"), pool_size=3)
    await asyncio.gather(*(_slow_one(database) for _ in range(3)))
    await asyncio.to_thread(own_postgres.stop)
    with pytest.raises(StoreUnavailableError):
        await _one(database)
    await asyncio.to_thread(own_postgres.start)
    assert await asyncio.gather(*(_one(database) for _ in range(6))) == [1] * 6
    await database.close()


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_a_statement_that_loses_its_server_is_told_as_an_outage(own_postgres: PostgresServer, how: str) -> None:
    database = Database(own_postgres.url("postgres"))
    for statement in (database.read, database.write):
        waiting = asyncio.create_task(_in(statement, "SELECT pg_sleep(60)"))
        await _until_it_sleeps(own_postgres)
        await asyncio.to_thread(getattr(own_postgres, how))
        with pytest.raises(StoreUnavailableError):
            await waiting
        await asyncio.to_thread(own_postgres.start)
        assert await _one(database) == 1
    await database.close()


async def test_a_connection_that_an_operator_ends_costs_one_request_at_most(postgres: PostgresServer, postgres_url: str) -> None:
    database = Database(postgres_url, pool_size=1)
    assert await _one(database) == 1
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tool-agent' AND datname = current_database()"
    await asyncio.to_thread(postgres.execute, end, postgres_url.rpartition("/")[2])
    # Whether we have heard of it by now is a matter of microseconds.
    with suppress(StoreUnavailableError):
        assert await _one(database) == 1
    assert await _one(database) == 1
    await database.close()


async def test_a_lock_that_is_held_for_too_long_and_a_deadlock_are_outages(postgres_url: str) -> None:
    database = Database(postgres_url)
    async with database.write() as connection:
        await insert_new(connection, groups, [{"group_id": name, "document": "{}"} for name in "ab"])
    barrier = asyncio.Barrier(2)

    async def change(first: str, second: str) -> None:
        async with database.write() as connection:
            await connection.execute(groups.update().where(groups.c.group_id == first).values(document="1"))
            await barrier.wait()
            await connection.execute(groups.update().where(groups.c.group_id == second).values(document="1"))

    ended = await asyncio.gather(change("a", "b"), change("b", "a"), return_exceptions=True)
    assert {type(one) for one in ended} == {type(None), StoreUnavailableError}
    async with database.write() as holder:
        await holder.execute(groups.update().values(document="2"))
        with pytest.raises(StoreUnavailableError):
            await _in(database.write, "SET LOCAL lock_timeout = 50; ", "UPDATE groups SET document = '3'")
    await database.close()


async def test_transactions_that_want_to_be_alone_wait_for_each_other(database: Database) -> None:
    """Both replace the whole table: without waiting, the second would find its rows present."""

    async def replace(number: int) -> None:
        async with database.write(alone="groups") as connection:
            await connection.execute(groups.delete())
            await connection.execute(groups.insert().values(group_id="one", document=str(number)))

    await asyncio.gather(*map(replace, range(8)))
    async with database.read() as connection:
        assert len((await connection.execute(select(groups))).all()) == 1


async def test_what_we_did_wrong_is_no_outage_and_does_not_tell_the_values(database: Database) -> None:
    async with database.write() as connection:
        await insert_new(connection, groups, [{"group_id": "g", "document": "sesame"}])
    with pytest.raises(IntegrityError) as refusal:
        async with database.write() as connection:
            await connection.execute(groups.insert().values(group_id="g", document="sesame"))
    assert "sesame" not in str(refusal.value)


async def test_a_value_that_does_not_fit_is_no_outage(postgres_url: str) -> None:
    """SQLite takes any length, so long values must be refused before."""
    database = Database(postgres_url)
    for values in ({"group_id": "g" * 129, "document": ""}, {"group_id": "g", "document": 7}):
        with pytest.raises(DBAPIError):
            async with database.write() as connection:
                await connection.execute(groups.insert().values(**values))
    await database.close()


@pytest.mark.parametrize(("said", "kept"), [("a\0b", "a\ufffdb"), ("\ud83d", "\ufffd"), ("漢\U0001f600\n", "漢\U0001f600\n")])
async def test_text_that_no_database_can_hold_is_replaced_alike_when_written_and_when_sought(
    database: Database, said: str, kept: str
) -> None:
    async with database.write() as connection:
        await insert_new(connection, groups, [{"group_id": said, "document": said}, {"group_id": "other", "document": said}])
    async with database.read() as connection:
        found = (await connection.execute(select(groups.c.document).where(groups.c.group_id == said))).scalar_one()
        assert (found, (await connection.execute(select(literal(said)))).scalar_one()) == (kept, kept)


async def test_ids_are_ordered_by_their_bytes(database: Database) -> None:
    names = ["B", "_", "a", "a:b", "ab", "é", "漢"]
    async with database.write() as connection:
        await insert_new(connection, groups, [{"group_id": name, "document": ""} for name in reversed(names)])
    async with database.read() as connection:
        assert list((await connection.execute(select(groups.c.group_id).order_by(groups.c.group_id))).scalars()) == names


async def _one(database: Database) -> int:
    async with database.read() as connection:
        return (await connection.execute(text("SELECT 1"))).scalar_one()


async def _slow_one(database: Database) -> None:
    await _in(database.read, "SELECT pg_sleep(0.1)")


async def _in(transaction: Callable[[], AbstractAsyncContextManager[AsyncConnection]], *statements: str) -> None:
    async with transaction() as connection:
        for statement in statements:
            await connection.execute(text(statement))


async def _until_it_sleeps(server: PostgresServer) -> None:
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    async with asyncio.timeout(60):
        while await asyncio.to_thread(server.execute, query) == "0":  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(0.02)


async def test_a_statement_on_sqlite_is_one_visit_to_the_thread_of_the_driver(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'x.db'}")
    async with database.read() as connection:
        await connection.execute(select(literal(1)))
        with caplog.at_level(logging.DEBUG, "aiosqlite"):
            assert (await connection.execute(select(literal(1), literal("a")))).all() == [(1, "a")]
    await database.close()
    assert sum(record.message.startswith("executing") for record in caplog.records) == 1


@pytest.mark.parametrize(("statements", "visits"), [(0, 0), (1, 2), (2, 3)])
async def test_a_transaction_on_sqlite_begins_with_its_first_statement(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, statements: int, visits: int
) -> None:
    migrate(url := f"sqlite+aiosqlite:///{tmp_path / 'x.db'}", tmp_path / "lock")
    database, other = Database(url), Database(url)
    async with database.read() as connection:
        await connection.execute(select(literal(1)))
    with caplog.at_level(logging.DEBUG, "aiosqlite"):
        async with database.write() as connection:
            for number in range(statements):
                await connection.execute(groups.insert().values(group_id=str(number), document=""))
    assert sum(record.message.startswith("executing") for record in caplog.records) == visits
    assert len(await other.rows(select(groups))) == statements
    await database.close()
    await other.close()


async def test_what_a_transaction_on_sqlite_has_begun_is_undone_when_it_fails(tmp_path: Path) -> None:
    migrate(url := f"sqlite+aiosqlite:///{tmp_path / 'x.db'}", tmp_path / "lock")
    database = Database(url)
    one = "INSERT INTO groups (group_id, document) VALUES ('one', '')"
    with pytest.raises(IntegrityError):
        await _in(database.write, one, one)
    assert await database.rows(select(groups)) == []
    await database.close()
