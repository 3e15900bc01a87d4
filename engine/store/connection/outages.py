"""Which database errors are outages, and not faults of ours or of a caller."""

import sqlite3
from collections.abc import Mapping

import asyncpg
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from toolagent.core.failures import StoreUnavailableError, StoreUnwritableError

ALL_BUSY = "All connections to the database are busy."
_CLASSES = ("08", "53", "57", "58")
"""PostgreSQL's classes of outages: connection, resources, operator intervention or time-out, system errors."""

_STATES = frozenset(
    {
        "25006",  # read-only: a standby that has not taken over yet
        "25P03",  # a transaction that was idle for too long was ended
        "28000",  # the user is refused: it was accepted when we started
        "28P01",  # the password is refused
        "3D000",  # the database is gone
        "40001",  # serialisation: cannot happen at READ COMMITTED, where a standby may still say it
        "40P01",  # deadlock: this transaction was chosen to give way, and nothing of it was written
        "42P01",  # the tables are gone: somebody migrated down
        "55P03",  # somebody holds a lock for too long
    }
)


RESTORE = 'restore a backup while the service is stopped ("Backup and restore" in docs/operations.md)'
_ROOM = "make room; the service goes on by itself"
_SQLITE: Mapping[int, tuple[str, str, str]] = {
    sqlite3.SQLITE_FULL: ("disk_full", "its disk is full", _ROOM),
    sqlite3.SQLITE_CORRUPT: ("damaged", "its file is damaged (malformed)", RESTORE),
    sqlite3.SQLITE_NOTADB: ("damaged", "its file is damaged (malformed): it is no database", RESTORE),
    sqlite3.SQLITE_READONLY: ("read_only", "its file is read-only", "make file and folder writable for the service's user"),
    sqlite3.SQLITE_PERM: ("no_right", "its file may not be opened", "make file and folder writable for the service's user"),
    sqlite3.SQLITE_CANTOPEN: (
        "cannot_open",
        "its file cannot be opened",
        "see that its folder is there and the service's user may write to it",
    ),
    sqlite3.SQLITE_IOERR: ("disk_fails", "its disk fails", "look at the machine's log; a disk without room may say this too"),
}
"""By SQLite's primary error code: the cause, the message for callers, and the remedy for operators."""

_POSTGRES_LASTING: Mapping[str, tuple[str, str, str]] = {
    "53100": ("disk_full", "its disk is full", _ROOM),
    "58030": ("disk_fails", "its disk fails", "look at the server's log"),
    "XX001": ("damaged", "its data is damaged", RESTORE),
    "XX002": ("damaged", "one of its indexes is damaged", "look at the server's log; REINDEX may do"),
}


def unwritable(cause: str, what: str, remedy: str, file: str = "", said: object = "") -> StoreUnwritableError:
    """`what` completes "The database cannot be used: …". Only operators see `file`."""
    place = f" {file}" if file else ""
    driver = f" ({said})" if said else ""
    told = f"The database cannot be used: {what}."
    return StoreUnwritableError(cause, told, f"The database{place} cannot be used: {what}{driver}; {remedy}.")


def outage_of(error: BaseException, file: str = "") -> StoreUnavailableError | None:
    """Our error for an error of the database, its driver or the pool; None if it is no outage.

    The message has neither statement nor parameters: they may hold secrets. `file` is SQLite's.
    """
    if (lasting := _lasting(error, file)) is not None:
        return lasting
    match error:
        case PoolTimeoutError():
            return StoreUnavailableError(ALL_BUSY)
        case TimeoutError():
            return StoreUnavailableError("The database does not answer in time.")
        case OSError():
            return StoreUnavailableError(f"The database does not answer: {error.strerror or error}")
        case DBAPIError() | asyncpg.PostgresError() | asyncpg.InterfaceError() | asyncpg.InternalClientError() if _is_outage(error):
            return StoreUnavailableError(f"The database does not answer: {_cause(error)}")
        case _:
            return None


def _lasting(error: BaseException, file: str) -> StoreUnwritableError | None:
    """An outage that waiting does not end."""
    cause = _cause(error)
    if isinstance(cause, sqlite3.Error):
        code: int | None = getattr(cause, "sqlite_errorcode", None)
        found = _SQLITE.get(code & 0xFF) if code is not None else None
    else:
        found = _POSTGRES_LASTING.get(sqlstate_of(error) or "")
    return unwritable(*found, file, cause) if found else None


def sqlstate_of(error: BaseException) -> str | None:
    """PostgreSQL's error code, which is the same in every language and version."""
    state = getattr(_cause(error), "sqlstate", None)
    return state if isinstance(state, str) else None


def is_out_of_step(error: BaseException) -> bool:
    """Whether the connection is out of sync: a late answer or the end of the connection may come instead of the next answer."""
    return isinstance(error, TimeoutError) or isinstance(error.__cause__ or error, asyncpg.InternalClientError)


def _is_outage(error: Exception) -> bool:
    state = sqlstate_of(error)
    if state is not None:
        return state in _STATES or state.startswith(_CLASSES)
    # A value that the driver cannot send is both InterfaceError and ValueError. It is no outage.
    said = _cause(error).__cause__ or error
    if isinstance(said, asyncpg.InternalClientError):
        return True
    return isinstance(error, OperationalError | InterfaceError | asyncpg.InterfaceError) and not isinstance(said, ValueError)


def _cause(error: BaseException) -> BaseException:
    """The driver's error."""
    return error.orig or error if isinstance(error, DBAPIError) else error
