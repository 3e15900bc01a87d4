"""The connection to the database, and how transactions begin."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from filelock import FileLock
from sqlalchemy import Connection, event, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, InterfaceError, InvalidRequestError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from toolagent.core.failures import StoreUnavailableError

__all__ = ["Database", "UnusableDatabaseError", "migrate"]

_MIGRATIONS = Path(__file__).parent / "migrations"
_BUSY_TIMEOUT_MS = 10_000
_WRITES = "tool_agent_writes"
_EXAMPLE = "sqlite+aiosqlite:////folder/tool-agent.db"


class UnusableDatabaseError(ValueError):
    """The URL names no database that we can use. The message does not repeat the URL: there may be a password in it."""


class Database:
    """One engine, two kinds of transaction.

    SQLite refuses a transaction that reads first and writes later when another one wrote meanwhile; so one that will write says so
    at its beginning. `pool_wait_s` is how many seconds a transaction waits for a free connection. Raises UnusableDatabaseError.
    """

    def __init__(self, url: str, *, pool_wait_s: float = 30.0) -> None:
        self.url = url
        with _usable():
            self._engine = _engine(url, pool_wait_s)

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[AsyncConnection]:
        """A transaction that only reads. Raises StoreUnavailableError."""
        with _named_failures():
            async with self._engine.connect() as connection:
                yield connection

    @asynccontextmanager
    async def write(self) -> AsyncGenerator[AsyncConnection]:
        """A transaction that is committed at the end of the block, or not at all. Raises StoreUnavailableError."""
        with _named_failures():
            async with self._engine.connect() as connection:
                await connection.execution_options(**{_WRITES: True})
                async with connection.begin():
                    yield connection

    async def check(self) -> None:
        """Raises StoreUnavailableError when the database does not answer."""
        async with self.read() as connection:
            await connection.execute(text("SELECT 1 FROM tools WHERE 1 = 0"))

    async def close(self) -> None:
        await self._engine.dispose()


@contextmanager
def _named_failures() -> Generator[None]:
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        raise StoreUnavailableError(f"The database does not answer: {error.orig}") from error
    except PoolTimeoutError as error:
        raise StoreUnavailableError("All connections to the database are busy.") from error


@contextmanager
def _usable() -> Generator[None]:
    try:
        yield
    except (ArgumentError, InvalidRequestError) as error:
        raise UnusableDatabaseError(f"its URL cannot be used ({_kind(error)}); it looks like {_EXAMPLE}") from error
    except ModuleNotFoundError as error:
        raise UnusableDatabaseError(f"its driver {error.name!r} is not installed") from error
    except (SQLAlchemyError, OSError) as error:
        raise UnusableDatabaseError(f"it cannot be opened ({_kind(error)})") from error


def _kind(error: Exception) -> str:
    """Without the texts that quote the URL."""
    return f"{type(error).__name__}: {error.orig}" if isinstance(error, OperationalError) else type(error).__name__


def migrate(url: str, lock: Path, revision: str = "head") -> None:
    """Bring the tables to a revision; only one process at a time. Blocks: call it before the event loop, or in a thread.

    Raises UnusableDatabaseError.
    """
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    with FileLock(lock), _usable():
        command.upgrade(config, revision)


def _engine(url: str, pool_wait_s: float) -> AsyncEngine:
    engine = create_async_engine(url, pool_timeout=pool_wait_s)
    if engine.dialect.name == "sqlite":
        event.listen(engine.sync_engine, "connect", _configure_sqlite)
        event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return engine


def _configure_sqlite(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # the driver must not say BEGIN: we do
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={_BUSY_TIMEOUT_MS}", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # Without BEGIN each statement stands alone, which is what single reads want: one round trip fewer to the driver's thread.
    if connection.get_execution_options().get(_WRITES):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
