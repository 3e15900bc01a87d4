"""A query or a transaction on SQLite as one visit to a thread.

One visit per statement would be slower: a busy Python waits at both ends of each, while other writers are locked out.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, CursorResult, Dialect, Engine, Executable, RootTransaction
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.connection.outages import ALL_BUSY
from engine.uncancelled import finished
from toolagent.core.failures import StoreUnavailableError

VISITORS = 5
"""Threads that use a file at once. One of them writes."""

_CLOSE_S = 1.0

T = TypeVar("T")

Work = Callable[[AsyncConnection], Coroutine[Any, Any, T]]
"""The work of a transaction. It awaits only `execute` of its connection, and finishes with one result before the next statement."""


class Visits:
    """Visits to one file: writing transactions one after the other, queries in parallel. `commit` runs a transaction's commit.

    Both engines share a pool of `VISITORS` connections. A query waits `wait_s` for a free one. A visit that has begun runs to its end,
    even if its caller was cancelled. All methods raise what the engine and the work raise.
    """

    def __init__(self, reading: Engine, writing: Engine, commit: Callable[[Callable[[], None]], None], wait_s: float) -> None:
        self._reading, self._writing, self._commit, self._wait_s = reading, writing, commit, wait_s
        self._kept: Connection | None = None
        """The connection of the thread that writes."""
        self._is_closed = False
        self._free = asyncio.Semaphore(VISITORS - 1)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="database writes")
        self._readers = ThreadPoolExecutor(VISITORS - 1, thread_name_prefix="database reads")

    async def make(self, work: Work[T]) -> T:
        """Run a writing transaction. The caller ensures that only one runs at a time."""
        return await finished(asyncio.get_running_loop().run_in_executor(self._writer, self._made, work))

    async def look(self, read: Callable[[Connection], T]) -> T:
        """Run a query. `read` must return plain values. Raises StoreUnavailableError if all connections stay busy."""
        # Waiting here can be cancelled. In the thread's queue it could not, and the query would still run.
        if not self._free.locked():
            await self._free.acquire()
        else:
            try:
                async with asyncio.timeout(self._wait_s):
                    await self._free.acquire()
            except TimeoutError:
                raise StoreUnavailableError(ALL_BUSY) from None
        try:
            return await finished(asyncio.get_running_loop().run_in_executor(self._readers, self._read, read))
        finally:
            self._free.release()

    async def close(self) -> None:
        """Also ends the threads. One that hangs is not waited for."""
        if self._is_closed:
            return
        self._is_closed = True
        given_up = self._writer.submit(self._give_up)
        self._writer.shutdown(wait=False)
        self._readers.shutdown(wait=False)
        await asyncio.wait((asyncio.wrap_future(given_up),), timeout=_CLOSE_S)
        await asyncio.to_thread(self._reading.dispose)

    def _read(self, read: Callable[[Connection], T]) -> T:
        with self._reading.connect() as connection:
            return read(connection)

    def _made(self, work: Work[T]) -> T:
        if self._kept is None:
            self._kept = self._writing.connect()
        transaction: RootTransaction | None = None
        try:
            transaction = self._kept.begin()
            result = _at_once(work(cast("AsyncConnection", _Statements(self._kept))))
            self._commit(transaction.commit)
        except BaseException:
            self._undo(transaction)
            raise
        return result

    def _undo(self, transaction: RootTransaction | None) -> None:
        """Roll back. The connection is given up if that fails, and after a `BEGIN` or a `COMMIT` that failed."""
        is_usable = False
        try:
            if transaction is not None and transaction.is_active:
                transaction.rollback()
                is_usable = not transaction.connection.invalidated
        finally:
            if not is_usable:
                self._give_up()

    def _give_up(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.invalidate()  # it may be in a transaction that could not be rolled back
            kept.close()


class _Statements:
    """The part of an AsyncConnection that `Work` may use. Awaiting a statement runs it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def dialect(self) -> Dialect:
        return self._connection.dialect

    async def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]:
        return self._connection.execute(statement, parameters)


def _at_once(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as ended:
        return ended.value
    work.close()
    raise RuntimeError("A transaction waits for something else than its statements.")
