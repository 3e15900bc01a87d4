"""The connection to the database, how transactions begin, and bringing its tables to what the code means."""

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
from sqlalchemy import Executable, Row, RowMapping, TextClause, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncTransaction
from sqlalchemy.pool import QueuePool
from sqlalchemy.sql.selectable import TypedReturnsRows

from engine.store.clock import now, timestamp
from engine.store.engines import WRITES, UnknownUrlError, make_engine, make_visiting_engines
from engine.store.outages import RESTORE, outage_of, sqlstate_of, unwritable
from engine.store.quick_reads import QuickReads
from engine.store.sqlite_files import damage_at_start, is_deleted
from engine.store.tables import write_checks
from engine.store.upserts import upsert
from engine.store.visits import VISITORS, Visits, Work
from engine.uncancelled import ended, finished
from toolagent.core.failures import StoreUnavailableError, StoreUnwritableError

T = TypeVar("T")
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
"""By PostgreSQL's code for what went wrong."""


class UnusableDatabaseError(ValueError):
    """The URL names no database that we can use. The message does not repeat the URL: there may be a password in it."""


class CommitUnknownError(StoreUnavailableError):
    """The connection was lost while a transaction was committed: it may have been, or not."""


class Database:
    """One engine, two kinds of transaction.

    SQLite refuses a transaction that reads first and writes later when another one wrote meanwhile; so one that will write says so
    at its beginning. `pool_size` connections are opened at most; `pool_wait_s` is how many seconds a transaction waits for a free
    one. Raises UnusableDatabaseError.
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
        # SQLite's own way of waiting for another writer is to sleep and look again; those of this process take turns instead.
        self._turn = asyncio.Lock() if self._engine.dialect.name == "sqlite" else nullcontext()

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[AsyncConnection]:
        """For statements that only read; each sees the database as it is when it is sent. Raises StoreUnavailableError."""
        async with self._connected() as connection:
            yield connection

    async def rows(self, query: TypedReturnsRows[*Ts], parameters: Mapping[str, object] | None = None) -> Sequence[Row[*Ts]]:
        """Of one query, as tuples; as all of these, it raises StoreUnavailableError."""
        return await self._asked(query, parameters, lambda found: found.all())

    async def mappings(self, query: Executable, parameters: Mapping[str, object] | None = None) -> Sequence[RowMapping]:
        """The rows by the names of their columns."""
        return await self._asked(query, parameters, lambda found: found.mappings().all())

    async def mapping(self, query: Executable, parameters: Mapping[str, object] | None = None) -> RowMapping | None:
        """The row, of a query that finds one at most."""
        return await self._asked(query, parameters, lambda found: found.mappings().one_or_none())

    async def scalars(self, query: TypedReturnsRows[T]) -> Sequence[T]:
        """The only column."""
        return await self._asked(query, None, lambda found: found.scalars().all())

    async def scalar(self, query: TypedReturnsRows[T], parameters: Mapping[str, object] | None = None) -> T | None:
        """The only value; None where there is none."""
        return await self._asked(query, parameters, lambda found: found.scalar())

    async def number(self, query: TextClause) -> int:
        """The only value of a query without parameters that reads one small row, which has to be there."""
        if self._quick is not None:
            with self._used():
                number = self._quick.number(query.text)
            if number is not None:
                return number
        return await self._asked(query, None, lambda found: found.scalar_one())

    @asynccontextmanager
    async def write(self, *, alone: str | None = None) -> AsyncGenerator[AsyncConnection]:
        """A transaction that is committed at the end of the block, or not at all. Raises StoreUnavailableError.

        On SQLite it has the database for itself. On PostgreSQL only transactions with the same `alone` wait for each other: say it
        where one writes what it concludes from what it read, or replaces a whole table. Nothing is written when it raises, but for
        CommitUnknownError: then nobody knows, so what is written must bear being written again.
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
        """As `write`, and what the work returns. Cancelled, it is committed all the same, or not at all.

        On SQLite in a file all of it is one visit to a thread: see `Work` for what it may do.
        """
        if self._visits is None:
            async with self.write(alone=alone) as connection:
                return await work(connection)
        async with self._turn:
            with self._used():
                return await self._visits.make(work)

    @asynccontextmanager
    async def write_once(self) -> AsyncGenerator[AsyncConnection]:
        """For one statement, which commits itself: one round trip instead of three. Raises StoreUnavailableError."""
        async with self._turn, self._connected() as connection:
            yield connection

    async def check(self) -> None:
        """Write a row. Raises StoreUnavailableError when the database does not answer or cannot be written, or its file is gone."""
        async with self.write() as connection:
            await upsert(connection, write_checks, {"slot": self._slot, "at": timestamp(now())})
            # What is written to a file without a name is lost; so far nothing but this row has found out.
            if self.file is not None and await asyncio.to_thread(is_deleted, self.file):
                raise unwritable("moved", "its file was removed or replaced while the service runs", RESTORE, str(self.file))

    async def close(self) -> None:
        """Wait for transactions that are under way, for some seconds, and begin none any more."""
        self._closed = True
        # A connection that is given back to a pool which is gone is closed by nobody.
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
        """Failures of statements are put by the engine; those of getting a connection may come as bare OSErrors or the driver's own."""
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
        # SQLAlchemy's own blocks leave a commit, and giving back, to tasks that nothing waits for once the block is cancelled: the
        # connection would be in use twice, or never be given back when the loop ends. anyio cancels at every step until its scope is left.
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
                # Cancelled half way, it would be thrown away with its file open.
                await finished(connection.close())

    async def _connection(self) -> AsyncConnection:
        pool = self._engine.pool
        if not isinstance(pool, QueuePool) or pool.checkedin():
            return await self._engine.connect()
        # A new one; cancelled half way, nobody would have it, or close it.
        task = asyncio.ensure_future(_entered(self._engine))
        cancelled = await ended(task)
        if cancelled is not None:
            if not task.exception():
                await finished(task.result().close())
            raise cancelled
        return task.result()


async def wait_alone(connection: AsyncConnection, name: str) -> None:
    """Until no other transaction is `alone` under this name: in one of `write`."""
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
    """READ COMMITTED has no serialisation failures: a row that another one wrote is waited for, then taken as it is."""
    return {WRITES: True} | ({"isolation_level": "READ COMMITTED"} if connection.dialect.name == "postgresql" else {})


def migrate(url: str, lock: Path, revision: str = "head") -> None:
    """Bring the tables to a revision, up or down (`base`: no tables); only one process at a time, whatever host it is on.

    All of it happens or nothing, also when the process dies half way. `lock` is a file for the processes of this machine. Blocks: call
    it before the event loop, or in a thread. Raises UnusableDatabaseError.
    """
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    with FileLock(lock), _usable():
        _require_whole(url)
        # Each does nothing when the tables are beyond already, or not there yet.
        if revision != "base":
            command.upgrade(config, revision)
        if revision != "head":
            command.downgrade(config, revision)


def _require_whole(url: str) -> None:
    """A damaged file is said before anything is written to it."""
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
    """Only our own texts: the others quote the URL."""
    return str(error) if isinstance(error, UnknownUrlError) else type(error).__name__


def _put(error: Exception) -> str:
    cause = error.__cause__ if isinstance(error, StoreUnavailableError) and error.__cause__ else error
    remedy = _REMEDIES.get(sqlstate_of(cause) or "")
    said = error if isinstance(error, StoreUnavailableError) else outage_of(cause)
    said = said or StoreUnavailableError(f"It cannot be opened ({type(cause).__name__}).")
    return f"{remedy} ({said})" if remedy else str(said)
