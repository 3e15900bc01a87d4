"""SQLite through the driver's thread, with one visit there for each statement.

SQLAlchemy visits the thread to make a cursor, to execute, to fetch and to close. Each visit costs more than a short statement. Here one
visit does it all, and the first statement also begins the transaction.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVarTuple

import aiosqlite

Ts = TypeVarTuple("Ts")

_Ended = tuple[Any, int, int | None, Sequence[Any]]
"""A cursor's `description`, `rowcount` and `lastrowid`, and all its rows."""


class DriverConnection(aiosqlite.Connection):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(partial(sqlite3.connect, *args, **options), iter_chunk_size=64)
        self._thread.daemon = True  # as SQLAlchemy has it
        self._writes = False

    def cursor(self) -> "_Cursor":  # pyright: ignore[reportIncompatibleMethodOverride] - the protocol of SQLAlchemy, not of aiosqlite
        return _Cursor(self)

    async def executed(self, method: str, statement: str, parameters: Iterable[Any]) -> _Ended:
        return await self._execute(_executed, self._conn, method, statement, parameters, begins=self._writes)

    def begin_with_next(self) -> None:
        """The next statement begins a writing transaction, which excludes other writers."""
        self._writes = True

    async def commit(self) -> None:
        """Does nothing if no statement has begun the transaction."""
        self._writes = False
        if self.in_transaction:
            await super().commit()

    async def rollback(self) -> None:
        """SQLAlchemy asks for it after each read too, when no transaction has begun."""
        self._writes = False
        if self.in_transaction:
            await super().rollback()


class _Cursor:
    """Holds all rows of a statement; SQLite's own cursor is closed by then."""

    def __init__(self, connection: DriverConnection) -> None:
        self._connection = connection
        self._rows: Sequence[Any] = ()
        self.description: Any = None
        self.rowcount, self.arraysize = -1, 1
        self.lastrowid: int | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def execute(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        self._take(await self._connection.executed("execute", statement, parameters))

    async def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        self._take(await self._connection.executed("executemany", statement, rows))

    async def fetchall(self) -> Sequence[Any]:
        rows, self._rows = self._rows, ()
        return rows

    async def close(self) -> None:
        self._rows = ()

    def _take(self, ended: _Ended) -> None:
        self.description, self.rowcount, self.lastrowid, self._rows = ended


async def connect(*args: Any, **options: Any) -> DriverConnection:
    """Takes what `sqlite3.connect` does. Raises sqlite3.Error."""
    connection = DriverConnection(*args, **options)
    await connection
    return connection


def _executed(connection: sqlite3.Connection, method: str, statement: str, parameters: Iterable[Any], *, begins: bool) -> _Ended:
    """In the driver's thread."""
    if begins and not connection.in_transaction:
        connection.execute("BEGIN IMMEDIATE")
    cursor = connection.cursor()
    try:
        getattr(cursor, method)(statement, parameters)
        # `rowcount` is right only after all returned rows are read.
        rows = cursor.fetchall() if cursor.description else ()
        return cursor.description, cursor.rowcount, cursor.lastrowid, rows
    finally:
        cursor.close()
