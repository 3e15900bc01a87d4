"""The migrations make the tables of the code, up and down, with their content."""

import asyncio
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import NamedTuple

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from pydantic import JsonValue
from sqlalchemy import Connection, inspect, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from engine import store
from engine.store.database import Database, UnusableDatabaseError, migrate
from engine.store.sessions import SessionTable
from engine.store.tables import METADATA, group_sessions
from tests.calls.test_memberships import group_of
from tests.copies import start_text
from tests.postgres import PostgresServer, postgres_database
from tests.system.loaded import Process
from toolagent.contracts.sessions import OpenSession, SessionState, SessionView
from toolagent_service.groups.roles import marks_of

# Each defines tables. Those that nothing here imports would be missing when this file is run alone.
for module in iter_modules(store.__path__, f"{store.__name__}."):
    import_module(module.name)

_ROWS = (
    "INSERT INTO tools VALUES ('ns:x', '1.0.0', 'image', 'catalog', NULL, '2026-11-21T00:00:00.000000+00:00')",
    "INSERT INTO tool_versions VALUES ('ns:x', '1.0.0', '{\"name\": \"工具\"}', '2026-11-21T00:00:00.000000+00:00')",
    "INSERT INTO sources VALUES ('ns:x', '1.0.0', 0, '{}')",
    "INSERT INTO groups VALUES ('g', '{}')",
    "INSERT INTO routes VALUES ('ns:x', 'host-1', '1.0.0', 'running', '{}', '2026-11-21T00:00:00.000000+00:00')",
    "INSERT INTO files VALUES ('file_1', 'a.png', 'image/png', 7, 'abc', '2026-11-20T00:00:00.000000+00:00')",
    "INSERT INTO faults VALUES (0, 'registry.json', '$', 'broken')",
    "INSERT INTO events VALUES ('e', 'tool_added', 'ns:x', NULL, '2026-11-21T00:00:00.000000+00:00', NULL)",
    "INSERT INTO calls (call_id, tool_id, version, fingerprint, workflow_id, run_id, params, caller, created_at, is_success, result)"
    " VALUES ('call-1', 'ns:x', '1.0.0', 'f', 'w', 'r', '{}', '{}', '2026-11-21T00:00:00.000000+00:00', true, '{}')",
)
"""One row in every table of revision 0001."""

_BOUND_S = 60.0

_MIGRATE = """
import sys
from pathlib import Path
from engine import store
from engine.store.database import migrate

migrate(sys.argv[1], Path(sys.argv[2]))
"""
_DIE = """
import os
from sqlalchemy import Engine, event

@event.listens_for(Engine, "before_cursor_execute")
def die(connection, cursor, statement, parameters, context, executemany):
    if statement.strip().startswith("CREATE TABLE hosts"):
        os._exit(9)
"""


class Empty(NamedTuple):
    """A database without tables, and the lock file of its migrations on this machine."""

    url: str
    lock: Path


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Empty]:
    if request.param == "sqlite":
        yield Empty(f"sqlite+aiosqlite:///{tmp_path / 'x.db'}", tmp_path / "lock")
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        with postgres_database(server) as url:
            yield Empty(url, tmp_path / "lock")


async def test_the_migrated_database_has_the_tables_of_the_code(database: Database) -> None:
    def differences(connection: Connection) -> object:
        return compare_metadata(MigrationContext.configure(connection), METADATA)

    async with database.read() as connection:
        assert await connection.run_sync(differences) == []


async def test_migrating_twice_changes_nothing_and_many_hosts_at_once_wait_for_each_other(empty: Empty) -> None:
    """Each host has its own lock file; SQLite is for one host, whose processes share it."""
    locks = [empty.lock.with_suffix(f".{number}") for number in range(3)] if "postgresql" in empty.url else [empty.lock] * 3
    hosts = [_migrating_elsewhere(empty.url, lock) for lock in locks]
    assert [await asyncio.to_thread(host.wait, _BOUND_S) for host in hosts] == [0, 0, 0]
    await asyncio.to_thread(migrate, empty.url, empty.lock)
    assert await _tables(empty.url) == {*METADATA.tables, "alembic_version"}


async def test_what_the_first_revision_held_survives_the_way_up_down_and_up_again(empty: Empty) -> None:
    await asyncio.to_thread(migrate, empty.url, empty.lock, "0001")
    database = Database(empty.url)
    async with database.write() as connection:
        for row in _ROWS:
            await connection.execute(text(row))
    before = await _contents(database)
    assert all(before.values()), "every table has a row"
    await database.close()

    await asyncio.to_thread(migrate, empty.url, empty.lock)
    database = Database(empty.url)
    async with database.read() as connection:
        file = (await connection.execute(text("SELECT size, created_at, used_at FROM files"))).one()
        assert (file.size, file.used_at) == (7, file.created_at)
    await database.close()

    await asyncio.to_thread(migrate, empty.url, empty.lock, "0001")
    database = Database(empty.url)
    assert await _contents(database) == {**before, "faults": []}, "the next import finds the faults again"
    await database.close()
    await asyncio.to_thread(migrate, empty.url, empty.lock)
    assert await _tables(empty.url) == {*METADATA.tables, "alembic_version"}


async def test_sessions_that_live_are_found_by_what_calls_name_them_after_the_way_up(empty: Empty) -> None:
    group = group_of("servers")
    launched: JsonValue = {"server_id": {"place": "工具", "number": 1.0}}
    states = {SessionState.LAUNCHING, SessionState.READY}
    await asyncio.to_thread(migrate, empty.url, empty.lock, "0017")
    database, at = Database(empty.url), "2026-11-21T00:00:00.000000+00:00"
    row = text("INSERT INTO group_sessions VALUES (:session_id, 'servers', :state, :document, :request, :at, :at, NULL)")
    async with database.write() as connection:
        for session_id, state, fields in (
            ("session-00000001", "ready", {"launched": launched, "launch_call_id": "call-00000001"}),
            ("session-00000002", "launching", {"launch_call_id": "call-00000002"}),
        ):
            view = SessionView.model_validate({"session_id": session_id, "group_id": "servers", "state": state, "opened_at": at, **fields})
            request = OpenSession(session_id=session_id, group=group).model_dump_json(exclude_defaults=True)
            whole = {"session_id": session_id, "state": state, "document": view.model_dump_json(), "request": request, "at": at}
            await connection.execute(row, whole)
        unread = {**whole, "session_id": "session-00000003", "state": "ready", "document": "[", "request": "["}
        await connection.execute(row, unread)
    await database.close()

    await asyncio.to_thread(migrate, empty.url, empty.lock)
    database = Database(empty.url)
    found = await SessionTable(database).named((marks_of(group, launched),), states)
    unnamed = await database.scalars(select(group_sessions.c.unnamed).order_by(group_sessions.c.session_id))
    await database.close()
    assert [view.session_id for view in found] == ["session-00000001"]
    assert [*unnamed] == [None, "call-00000002", ""]


async def test_all_tables_can_go(empty: Empty) -> None:
    await asyncio.to_thread(migrate, empty.url, empty.lock)
    await asyncio.to_thread(migrate, empty.url, empty.lock, "base")
    assert await _tables(empty.url) == {"alembic_version"}


async def test_a_migration_that_dies_half_way_has_done_nothing_and_can_be_done_again(empty: Empty) -> None:
    await asyncio.to_thread(migrate, empty.url, empty.lock, "0001")
    before = await _tables(empty.url)
    assert await asyncio.to_thread(_migrating_elsewhere(empty.url, empty.lock, _DIE).wait, _BOUND_S) == 9
    assert await _tables(empty.url) == before
    await asyncio.to_thread(migrate, empty.url, empty.lock)
    assert await _tables(empty.url) == {*METADATA.tables, "alembic_version"}


async def test_tables_of_a_newer_version_are_left_alone(database_url: str, tmp_path: Path) -> None:
    database = Database(database_url)
    async with database.write() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    await database.close()
    with pytest.raises(UnusableDatabaseError):
        await asyncio.to_thread(migrate, database_url, tmp_path / "lock")


async def test_every_id_and_time_is_compared_by_its_bytes(postgres_url: str) -> None:
    """Otherwise a column is missing in `_TABLES` of the migration that made it."""
    query = text(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
        " AND data_type = 'character varying' AND collation_name IS DISTINCT FROM 'C' AND table_name <> 'alembic_version'"
    )
    database = Database(postgres_url)
    async with database.read() as connection:
        assert (await connection.execute(query)).all() == []
    await database.close()


def _migrating_elsewhere(url: str, lock: Path, first: str = "") -> Process:
    """Migrates in a process of its own, like that of another host."""
    host, said = start_text(first + _MIGRATE, url, str(lock))
    said.close()
    return host


async def _tables(url: str) -> set[str]:
    database = Database(url)
    async with database.read() as connection:
        names = await connection.run_sync(lambda sync: set(inspect(sync).get_table_names()))
    await database.close()
    return names


async def _contents(database: Database) -> dict[str, list[tuple[object, ...]]]:
    async with database.read() as connection:
        names = await connection.run_sync(lambda sync: set(inspect(sync).get_table_names()))
        return {name: await _rows(connection, name) for name in sorted(names)}


async def _rows(connection: AsyncConnection, table: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in (await connection.execute(text(f'SELECT * FROM "{table}"'))).all()]  # noqa: S608 - a name of ours
