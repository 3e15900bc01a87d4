"""Makes the engines of both databases, and checks their connections before use."""

import sqlite3
import time
from collections.abc import Sequence
from typing import Any, cast

import asyncpg
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection, Dialect
from sqlalchemy.exc import ArgumentError, DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from engine.store.connection import sqlite_driver
from engine.store.connection.outages import is_out_of_step, outage_of
from toolagent.core.texts import well_formed

_SQLITE, _POSTGRES = "sqlite+aiosqlite", "postgresql+asyncpg"
WRITES = "tool_agent_writes"
"""Execution option of a writing transaction."""

BUSY_TIMEOUT_MS = 10_000
CONNECT_S = 5.0
ANSWER_MS = 20_000
_AILING_S = 5.0
"""Extra time for a server that fails to end a statement by itself."""

_MIGRATION_LOCK_MS = 600_000
"""How long a host waits for another host's migration."""

_SESSION = {
    "application_name": "tool-agent",
    # Statements outside a transaction must not fail because another one wrote meanwhile, whatever the server's default is.
    "default_transaction_isolation": "read committed",
    # Limits how long the locks of a vanished host stay.
    "idle_in_transaction_session_timeout": "60s",
    # Our statements are short: compiling them would cost more than it saves.
    "jit": "off",
}
_QUIET_S = 15.0
"""A connection idle for this long is tested before use: a firewall may have dropped it."""

_USED_AT = "tool_agent_used_at"
_QUERY = frozenset(
    {"host", "port", "ssl", "target_session_attrs", "passfile", "service", "servicefile", "krbsrvname", "prepared_statement_cache_size"}
)
"""URL parameters that asyncpg takes as text."""


class UnknownUrlError(ArgumentError):
    """The message names the fault without repeating the URL."""


def make_engine(url: str, pool_size: int, pool_wait_s: float) -> AsyncEngine:
    """An engine with at most `pool_size` connections. A transaction waits at most `pool_wait_s` seconds for a free one.

    Raises ArgumentError for an unusable URL, ModuleNotFoundError for a missing driver.
    """
    parsed = _parsed(url)
    pool = {"pool_size": pool_size, "max_overflow": 0, "pool_timeout": pool_wait_s, "pool_use_lifo": True}
    if parsed.drivername == _POSTGRES:
        return _postgres_engine(parsed, ANSWER_MS, BUSY_TIMEOUT_MS, **pool)
    engine = create_async_engine(parsed, hide_parameters=True, **pool)
    _listen(engine.sync_engine, parsed.database or "")
    return engine


def make_visiting_engines(url: str, pool_size: int) -> tuple[Engine, Engine]:
    """Two engines for SQLite in a file, for so many threads: one for queries, one for writing. Raises ArgumentError."""
    engine = create_engine(_parsed(url).set(drivername="sqlite"), hide_parameters=True, pool_size=pool_size, max_overflow=0)
    _listen(engine, engine.url.database or "")
    return engine, engine.execution_options(**{WRITES: True})


def make_migration_engine(url: str) -> Engine | AsyncEngine:
    """An engine without statement timeouts, for a migration. Raises as `make_engine`.

    For SQLite a synchronous one: the asynchronous driver's thread would outlive the event loop if the file cannot be opened.
    """
    parsed = _parsed(url)
    if parsed.drivername == _POSTGRES:
        return _postgres_engine(parsed, 0, _MIGRATION_LOCK_MS, poolclass=NullPool)
    engine = create_engine(parsed.set(drivername="sqlite"), hide_parameters=True, poolclass=NullPool)
    _listen(engine, parsed.database or "")
    return engine


def _parsed(url: str) -> URL:
    parsed = make_url(url)
    if parsed.drivername not in {_SQLITE, _POSTGRES}:
        raise UnknownUrlError(f"its driver is {parsed.drivername!r}")
    if unknown := sorted(parsed.query.keys() - _QUERY) if parsed.drivername == _POSTGRES else []:
        raise UnknownUrlError(f"asyncpg takes no {', '.join(unknown)} (TLS is `?ssl=require`)")
    return parsed


def _postgres_engine(url: URL, answer_ms: int, lock_ms: int, **pool: Any) -> AsyncEngine:
    connecting = {
        "timeout": CONNECT_S,
        "command_timeout": answer_ms / 1000 + _AILING_S if answer_ms else None,
        "server_settings": {**_SESSION, "statement_timeout": f"{answer_ms}ms", "lock_timeout": f"{lock_ms}ms"},
    }
    # Single reads need no transaction: BEGIN and ROLLBACK would be two more round trips each.
    engine = create_async_engine(url, hide_parameters=True, isolation_level="AUTOCOMMIT", connect_args=connecting, **pool)
    _listen(engine.sync_engine)
    return engine


def _listen(engine: Engine, file: str = "") -> None:
    def put_outage(context: ExceptionContext) -> Exception | None:
        return _put_outage(context, file)

    event.listen(engine, "handle_error", put_outage)
    event.listen(engine, "before_cursor_execute", _make_storable, retval=True)
    if engine.dialect.name == "postgresql":
        event.listen(engine, "checkout", _require_life)
        event.listen(engine, "checkin", _note_use)
    else:
        event.listen(engine, "do_connect", _open_sqlite)
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)


def _put_outage(context: ExceptionContext, file: str) -> Exception | None:
    """Replaces errors of driver and pool by ours."""
    outage = outage_of(context.sqlalchemy_exception or context.original_exception, file)
    if is_out_of_step(context.original_exception):
        context.is_disconnect = True
        context.invalidate_pool_on_disconnect = False
    return outage


def _require_life(connection: DBAPIConnection, record: ConnectionPoolEntry, _proxy: object) -> None:
    """Avoids a round trip: if a server ended the connection, the driver usually knows already."""
    driver = cast("asyncpg.Connection", record.driver_connection)
    if driver.is_closed():
        raise DisconnectionError
    if time.monotonic() - record.info.get(_USED_AT, time.monotonic()) > _QUIET_S:
        _ping(connection)


def _ping(connection: DBAPIConnection) -> None:
    try:
        connection.ping()
    except (connection.dbapi.Error, OSError) as error:
        raise DisconnectionError from error


def _note_use(_connection: DBAPIConnection | None, record: ConnectionPoolEntry) -> None:
    record.info[_USED_AT] = time.monotonic()


def _make_storable(
    _connection: Connection, _cursor: object, statement: str, parameters: object, _context: object, executemany: bool
) -> tuple[str, object]:
    """Replace characters that databases cannot store, so that every call can be recorded. The same on both databases."""
    # An INSERT of many rows in one statement has its parameters in one row.
    if executemany and isinstance(parameters, list):
        return statement, [_storable(row) for row in cast("Sequence[Sequence[object]]", parameters)]
    return statement, _storable(cast("Sequence[object]", parameters))


def _storable(row: Sequence[object]) -> tuple[object, ...]:
    return tuple(well_formed(value) if isinstance(value, str) and not value.isprintable() else value for value in row)


def _open_sqlite(dialect: Dialect, _record: ConnectionPoolEntry, args: tuple[Any, ...], options: dict[str, Any]) -> DBAPIConnection | None:
    """Test that the file can be opened: otherwise the driver leaves a thread that outlives its event loop."""
    sqlite3.connect(*args, **options).close()
    return dialect.connect(*args, async_creator_fn=sqlite_driver.connect, **options) if dialect.is_async else None


def _configure_sqlite(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # we send BEGIN, not the driver
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={BUSY_TIMEOUT_MS}", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # Single reads need no BEGIN: each statement stands alone, with one visit fewer to the driver's thread.
    if not connection.get_execution_options().get(WRITES):
        return
    driver = connection.connection.driver_connection
    if isinstance(driver, sqlite_driver.DriverConnection):
        driver.begin_with_next()
    else:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
