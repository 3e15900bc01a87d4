"""Which errors of a database mean that it is away or too busy now, and not that we or a caller did something wrong."""

import asyncpg
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from toolagent.core.failures import StoreUnavailableError

__all__ = ["is_out_of_step", "outage_of", "sqlstate_of"]

_CLASSES = ("08", "53", "57", "58")
"""PostgreSQL's classes of errors: no connection, no resources, an operator's or a time-out's doing, its machine."""

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


def outage_of(error: BaseException) -> StoreUnavailableError | None:
    """What to tell instead of an error of the database, its driver or the pool; None when it is no outage.

    Neither statement nor parameters are told: there may be secrets in them.
    """
    match error:
        case PoolTimeoutError():
            return StoreUnavailableError("All connections to the database are busy.")
        case TimeoutError():
            return StoreUnavailableError("The database does not answer in time.")
        case OSError():
            return StoreUnavailableError(f"The database does not answer: {error.strerror or error}")
        case DBAPIError() | asyncpg.PostgresError() | asyncpg.InterfaceError() | asyncpg.InternalClientError() if _is_outage(error):
            return StoreUnavailableError(f"The database does not answer: {_cause(error)}")
        case _:
            return None


def sqlstate_of(error: BaseException) -> str | None:
    """PostgreSQL's code for what went wrong: the same in every language and version."""
    state = getattr(_cause(error), "sqlstate", None)
    return state if isinstance(state, str) else None


def is_out_of_step(error: BaseException) -> bool:
    """Whether the connection may still say something that is no answer to the next question: a late one, or that the server ends it."""
    return isinstance(error, TimeoutError) or isinstance(error.__cause__ or error, asyncpg.InternalClientError)


def _is_outage(error: Exception) -> bool:
    state = sqlstate_of(error)
    if state is not None:
        return state in _STATES or state.startswith(_CLASSES)
    # A value that the driver cannot send is an InterfaceError too, and also a ValueError: that one stays wrong.
    said = _cause(error).__cause__ or error
    if isinstance(said, asyncpg.InternalClientError):
        return True
    return isinstance(error, OperationalError | InterfaceError | asyncpg.InterfaceError) and not isinstance(said, ValueError)


def _cause(error: BaseException) -> BaseException:
    """What the driver said."""
    return error.orig or error if isinstance(error, DBAPIError) else error
