"""The connection to the database, its transactions, and the migration of its tables."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import anyio
import asyncpg
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from filelock import FileLock
from pydantic import BaseModel
from sqlalchemy import Executable, Row, RowMapping, TextClause, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncTransaction
from sqlalchemy.pool import QueuePool
from sqlalchemy.sql.selectable import TypedReturnsRows

from engine.store.clock import timestamp
from engine.store.connection.engines import WRITES, UnknownUrlError, make_engine, make_visiting_engines
from engine.store.connection.outages import RESTORE, outage_of, sqlstate_of, unwritable
from engine.store.connection.quick_reads import QuickReads
from engine.store.connection.sqlite_files import damage_at_start, is_deleted
from engine.store.connection.visits import VISITORS, Visits, Work
from engine.store.rows.upserts import upsert
from engine.store.tables import write_checks
from engine.uncancelled import ended, finished
from toolagent.core.failures import StoreUnavailableError, StoreUnwritableError

T = TypeVar("T")
Document = TypeVar("Document", bound=BaseModel)
Ts = TypeVarTuple("Ts")

_MIGRATIONS = Path(__file__).parent / "migrations"
_SLOTS = 64
_CLOSE_S = 3.0
_EXAMPLES = "sqlite+aiosqlite:////folder/tool-agent.db or postgresql+asyncpg://user:password@host/database"
_REMEDIES = {
    "28000": "the server refuses the user; look at the user in the URL and at the server's pg_hba.conf",
    "28P01": "the server refuses the user or the password of the URL",
    "3D000": "the server has no database of that name; make it with `createdb`",
    "42501": "the user may not make tables there; make it the owner of the database, or GRANT CREATE ON SCHEMA public",
}
"""What the operator can do, by PostgreSQL's error code."""


class UnusableDatabaseError(ValueError):
    """The URL names no usable database. The message does not repeat the URL: it may hold a password."""


class CommitUnknownError(StoreUnavailableError):
    """The connection was lost during a commit: the transaction may be committed or not."""


class Database:
    """One engine, two kinds of transaction: reading and writing.

    SQLite refuses a transaction that reads first and writes later if another one wrote in between. So a writing transaction says so at
    its beginning. At most `pool_size` connections are open; a transaction waits at most `pool_wait_s` seconds for a free one. Raises
    UnusableDatabaseError.
    """

    def __init__(self, url: str, *, pool_size: int = 10, pool_wait_s: float = 8.0) -> None:
        self.url = url
        with _usable():
            self._engine = make_engine(url, pool_size, pool_wait_s)
        is_file = self._engine.dialect.name == "sqlite" and self._engine.url.database not in {None, "", ":memory:"}
        self.file = Path(self._engine.url.database or "") if is_file else None
        self._visits = Visits(*make_visiting_engines(url, VISITORS), _commit, pool_wait_s) if is_file else None
        self._quick = QuickReads(self.file) if self.file is not None else None
        self._slot = secrets.randbelow(_SLOTS)
        self._users, self._idle, self._closed = 0, asyncio.Event(), False
        # SQLite waits for another writer by sleeping and trying again. The writers of this process take turns instead.
        self._turn = asyncio.Lock() if self._engine.dialect.name == "sqlite" else nullcontext()

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[AsyncConnection]:
        """For statements that only read. Each sees the database as of the moment it is sent. Raises StoreUnavailableError."""
        async with self._connected() as connection:
            yield connection

    async def rows(self, query: TypedReturnsRows[*Ts], parameters: Mapping[str, object] | None = None) -> Sequence[Row[*Ts]]:
        """The rows of one query, as tuples. This and the methods below raise StoreUnavailableError."""
        return await self._asked(query, parameters, lambda found: found.all())

    async def mappings(self, query: Executable, parameters: Mapping[str, object] | None = None) -> Sequence[RowMapping]:
        """The rows as mappings from column names."""
        return await self._asked(query, parameters, lambda found: found.mappings().all())

    async def mapping(self, query: Executable, parameters: Mapping[str, object] | None = None) -> RowMapping | None:
        """The row of a query that finds at most one."""
        return await self._asked(query, parameters, lambda found: found.mappings().one_or_none())

    async def scalars(self, query: TypedReturnsRows[T]) -> Sequence[T]:
        """The values of a query's only column."""
        return await self._asked(query, None, lambda found: found.scalars().all())

    async def scalar(self, query: TypedReturnsRows[T], parameters: Mapping[str, object] | None = None) -> T | None:
        """The first value of a query; None if it finds no row."""
        return await self._asked(query, parameters, lambda found: found.scalar())

    async def document(self, model: type[Document], query: TypedReturnsRows[str | None]) -> Document | None:
        """The first value of a query, parsed as JSON of this model; None if there is none."""
        text = await self.scalar(query)
        return None if text is None else model.model_validate_json(text)

    async def number(self, query: TextClause) -> int:
        """The only value of a query without parameters that reads one small row, which has to be there."""
        number = self.number_at_once(query)
        return number if number is not None else await self._asked(query, None, lambda found: found.scalar_one())

    def number_at_once(self, query: TextClause) -> int | None:
        """Like `number`; None if it takes a wait."""
        return self._quick.number(query.text) if self._quick is not None and not self._closed else None

    @asynccontextmanager
    async def write(self, *, alone: str | None = None) -> AsyncGenerator[AsyncConnection]:
        """A transaction that commits at the end of the block, or not at all. Raises StoreUnavailableError.

        On SQLite it has the database to itself. On PostgreSQL only transactions with the same `alone` exclude each other. Name it when
        a transaction writes what it concludes from what it read, or replaces a whole table. If it raises, nothing is written, except
        with CommitUnknownError: then the outcome is unknown, so writes must be idempotent.
        """
        async with self._turn, self._connected() as connection:
            await connection.execution_options(**_writing(connection))
            transaction = await connection.begin()
            try:
                if alone is not None:
                    await wait_alone(connection, alone)
                yield connection
                await finished(_committed(transaction))
            except BaseException:
                if transaction.is_active:
                    await transaction.rollback()
                raise

    async def transact(self, work: Work[T], *, alone: str | None = None) -> T:
        """Run the work in one `write` transaction and return its result. A cancelled one still commits completely, or not at all.

        On SQLite in a file, the whole transaction is one visit to a thread: see `Work` for its limits.
        """
        if self._visits is None:
            async with self.write(alone=alone) as connection:
                return await work(connection)
        async with self._turn:
            with self._used():
                return await self._visits.make(work)

    @asynccontextmanager
    async def write_once(self) -> AsyncGenerator[AsyncConnection]:
        """For one statement that commits itself: one round trip instead of three. Raises StoreUnavailableError."""
        async with self._turn, self._connected() as connection:
            yield connection

    async def change(self, statement: Executable) -> int:
        """Run one statement that commits itself. Returns the number of changed rows. Raises StoreUnavailableError."""
        async with self.write_once() as connection:
            return (await connection.execute(statement)).rowcount

    async def check(self) -> None:
        """Write a row. Raises StoreUnavailableError if the database does not answer, is read-only, or its file is gone."""
        async with self.write() as connection:
            await upsert(connection, write_checks, {"slot": self._slot, "at": timestamp()})
            # SQLite writes to a deleted file without an error, and the data are lost. Only this check notices.
            if self.file is not None and await asyncio.to_thread(is_deleted, self.file):
                raise unwritable("moved", "its file was removed or replaced while the service runs", RESTORE, str(self.file))

    async def close(self) -> None:
        """Refuse new transactions and wait some seconds for the running ones."""
        self._closed = True
        # A connection returned to a disposed pool would stay open.
        try:
            if self._users:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._idle.wait(), _CLOSE_S)
        finally:
            if self._quick is not None:
                self._quick.close()
            if self._visits is not None:
                await self._visits.close()
            await self._engine.dispose()

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[AsyncConnection]:
        """A connection. The engine translates errors of statements; `_taken` those of connecting."""
        with self._used():
            async with self._taken() as connection:
                yield connection

    async def _asked(self, query: Executable, parameters: Mapping[str, object] | None, taken: Callable[[Any], T]) -> T:
        if self._visits is None:
            async with self.read() as connection:
                return taken(await connection.execute(query, parameters))
        with self._used():
            return await self._visits.look(lambda connection: taken(connection.execute(query, parameters)))

    @contextmanager
    def _used(self) -> Generator[None]:
        if self._closed:
            raise StoreUnavailableError("The database was closed: the service stops.")
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            if self._closed and not self._users:
                self._idle.set()

    @asynccontextmanager
    async def _taken(self) -> AsyncGenerator[AsyncConnection]:
        # When a block of SQLAlchemy is cancelled, it leaves the commit and the return of the connection to tasks that nothing awaits. The
        # connection could be in use twice, or never return. anyio cancels at every step until its scope is left.
        with anyio.CancelScope(shield=True):
            try:
                connection = await self._connection()
            except (SQLAlchemyError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                if (outage := outage_of(error, str(self.file or ""))) is not None:
                    raise outage from error
                raise
            try:
                yield connection
            finally:
                # A cancelled close would leave the file open.
                await finished(connection.close())

    async def _connection(self) -> AsyncConnection:
        pool = self._engine.pool
        if not isinstance(pool, QueuePool) or pool.checkedin():
            return await self._engine.connect()
        # Opens a new connection. A cancelled one would stay open.
        task = asyncio.ensure_future(_entered(self._engine))
        cancelled = await ended(task)
        if cancelled is not None:
            if not task.exception():
                await finished(task.result().close())
            raise cancelled
        return task.result()


class DatabaseAccess:
    """Base of the classes that read and write tables."""

    def __init__(self, database: Database) -> None:
        self._database = database


async def wait_alone(connection: AsyncConnection, name: str) -> None:
    """Wait, in a `write` transaction, until no other transaction is `alone` under this name."""
    if connection.dialect.name == "postgresql":
        await connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": name})


async def _entered(engine: AsyncEngine) -> AsyncConnection:
    return await engine.connect()


async def _committed(transaction: AsyncTransaction) -> None:
    with _committing():
        await transaction.commit()


def _commit(commit: Callable[[], None]) -> None:
    with _committing():
        commit()


@contextmanager
def _committing() -> Generator[None]:
    try:
        yield
    except StoreUnwritableError:
        raise
    except StoreUnavailableError as error:
        raise CommitUnknownError(str(error)) from error


def _writing(connection: AsyncConnection) -> dict[str, str | bool]:
    """READ COMMITTED has no serialisation failures: it waits for a row that another transaction changes, then reads the new one."""
    return {WRITES: True} | ({"isolation_level": "READ COMMITTED"} if connection.dialect.name == "postgresql" else {})


def migrate(url: str, lock: Path, revision: str = "head") -> None:
    """Migrate the tables up or down to a revision (`base`: no tables). One process at a time, across all hosts.

    It happens completely or not at all, even if the process dies. `lock` is a file for the processes of this machine. Blocks: call it
    before the event loop starts, or in a thread. Raises UnusableDatabaseError.
    """
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    with FileLock(lock), _usable():
        _require_whole(url)
        # Each does nothing if the tables are past the revision, or not there yet.
        if revision != "base":
            command.upgrade(config, revision)
        if revision != "head":
            command.downgrade(config, revision)


def _require_whole(url: str) -> None:
    """Report a damaged file before writing to it."""
    parsed = make_url(url)
    if parsed.drivername.startswith("sqlite") and parsed.database and (said := damage_at_start(Path(parsed.database))):
        raise unwritable("damaged", "its file is damaged", RESTORE, parsed.database, said)


@contextmanager
def _usable() -> Generator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise UnusableDatabaseError(f"its driver {error.name!r} is not installed") from error
    except CommandError as error:
        raise UnusableDatabaseError(f"its tables were made by a newer version of this service; use that one ({error})") from error
    except (ArgumentError, ValueError, OverflowError) as error:
        raise UnusableDatabaseError(f"its URL cannot be used ({_told(error)}); it looks like {_EXAMPLES}") from error
    except (StoreUnavailableError, SQLAlchemyError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise UnusableDatabaseError(_put(error)) from error


def _told(error: Exception) -> str:
    """Only our own messages: those of others quote the URL."""
    return str(error) if isinstance(error, UnknownUrlError) else type(error).__name__


def _put(error: Exception) -> str:
    cause = error.__cause__ if isinstance(error, StoreUnavailableError) and error.__cause__ else error
    remedy = _REMEDIES.get(sqlstate_of(cause) or "")
    said = error if isinstance(error, StoreUnavailableError) else outage_of(cause)
    said = said or StoreUnavailableError(f"It cannot be opened ({type(cause).__name__}).")
    return f"{remedy} ({said})" if remedy else str(said)
