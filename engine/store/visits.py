"""A query or a transaction on SQLite as one visit to a thread. Statement by statement it would go there and back for each, and where
Python is busy it waits at both ends every time, while nobody else may write.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, CursorResult, Dialect, Engine, Executable
from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.outages import ALL_BUSY
from engine.uncancelled import finished
from toolagent.core.failures import StoreUnavailableError

VISITORS = 5
"""Threads that use a file at once; one of them writes."""

T = TypeVar("T")

Work = Callable[[AsyncConnection], Coroutine[Any, Any, T]]
"""What a transaction does. It awaits nothing but `execute` of its connection, and is done with a result before it makes another."""


class Visits:
    """To one file: transactions that write one after the other, queries beside each other. `commit` is given the end of a transaction.

    Both engines share a pool of `VISITORS` connections. A query waits `wait_s` for a free one. A visit that has begun goes on to its end
    also where nobody waits for it any more. All raise what the engine and the work do.
    """

    def __init__(self, reading: Engine, writing: Engine, commit: Callable[[Callable[[], None]], None], wait_s: float) -> None:
        self._reading, self._writing, self._commit, self._wait_s = reading, writing, commit, wait_s
        self._free = asyncio.Semaphore(VISITORS - 1)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="database writes")
        self._readers = ThreadPoolExecutor(VISITORS - 1, thread_name_prefix="database reads")

    async def make(self, work: Work[T]) -> T:
        """One at a time: the caller sees to that."""
        return await finished(asyncio.get_running_loop().run_in_executor(self._writer, self._made, work))

    async def look(self, read: Callable[[Connection], T]) -> T:
        """What was read is a value by the time it is returned. Raises StoreUnavailableError where all connections stay busy."""
        # What waits here can be cancelled, and begins nothing: in a thread's queue it could not, and would be made all the same.
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
        await asyncio.to_thread(self._reading.dispose)
        self._writer.shutdown(wait=False)
        self._readers.shutdown(wait=False)

    def _read(self, read: Callable[[Connection], T]) -> T:
        with self._reading.connect() as connection:
            return read(connection)

    def _made(self, work: Work[T]) -> T:
        with self._writing.connect() as connection:
            transaction = connection.begin()
            try:
                result = _at_once(work(cast("AsyncConnection", _Statements(connection))))
                self._commit(transaction.commit)
            except BaseException:
                if transaction.is_active:
                    transaction.rollback()
                raise
            return result


class _Statements:
    """As much of an AsyncConnection as `Work` may use; whoever awaits a statement makes it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def dialect(self) -> Dialect:
        return self._connection.dialect

    async def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]:
        return self._connection.execute(statement, parameters)


def _at_once(work: Coroutine[Any, Any, T]) -> T:
    """The result of what never has to wait."""
    try:
        work.send(None)
    except StopIteration as ended:
        return ended.value
    work.close()
    raise RuntimeError("A transaction waits for something else than its statements.")
