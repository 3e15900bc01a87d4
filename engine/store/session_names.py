"""The table `session_names`: the values by which calls name living sessions."""

from collections.abc import Collection, Sequence

from sqlalchemy import Index, String, Table, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.elements import ColumnElement

from engine.store.rows.upserts import insert_new
from engine.store.tables import METADATA, group_sessions, key

_MOST = 100

session_names = Table(
    "session_names",
    METADATA,
    # A mark of `toolagent_service.groups.roles`: made of the group, a place in a launch's result, and the value there.
    key("mark", String(32)),
    key("session_id", String(80)),
    Index("ix_session_names_session_id", "session_id"),
)


async def name_session(connection: AsyncConnection, session_id: str, marks: Collection[str]) -> None:
    """Add marks of a session. Existing ones stay: a launch never changes."""
    await insert_new(connection, session_names, [{"mark": mark, "session_id": session_id} for mark in sorted(marks)])


async def forget_names(connection: AsyncConnection, of: ColumnElement[bool]) -> None:
    """Remove marks. `of` is a condition on `session_names.c.session_id`."""
    await connection.execute(delete(session_names).where(of))


def has_one_of_each(marks: Sequence[Collection[str]]) -> ColumnElement[bool]:
    """A condition on `group_sessions`: the session has one of each of the marks. Uses the first `_MOST`: SQLite combines 500 at most."""
    first, *others = (select(session_names.c.session_id).where(session_names.c.mark.in_(each)) for each in marks[:_MOST])
    return group_sessions.c.session_id.in_(first.intersect(*others) if others else first)
