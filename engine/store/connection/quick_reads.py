"""Tiny reads of a SQLite file on the event loop's own thread."""

import sqlite3
from contextlib import suppress
from pathlib import Path


class QuickReads:
    """One connection, opened at the first read.

    In WAL mode a read waits for no writer, and one row takes microseconds. Through another thread the same read costs half a millisecond
    of Python.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._connection: sqlite3.Connection | None = None

    def number(self, query: str) -> int | None:
        """The only value of a query. None if SQLite does not answer at once: then ask the database the usual way, which reports why."""
        try:
            if self._connection is None:
                read_only = f"{self._file.absolute().as_uri()}?mode=ro"
                self._connection = sqlite3.connect(read_only, uri=True, timeout=0, isolation_level=None, check_same_thread=False)
            ((number,),) = self._connection.execute(query).fetchall()
        except sqlite3.Error:
            self.close()
            return None
        return number

    def close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
