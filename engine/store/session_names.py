"""The table `session_names`: by what calls name the living sessions of groups."""

from collections.abc import Collection, Sequence

from sqlalchemy import Index, String, Table, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.elements import ColumnElement

from engine.store.tables import METADATA, group_sessions, key
from engine.store.upserts import insert_new

_MOST = 100

session_names = Table(
    "session_names",
    METADATA,
    # A mark of `toolagent_service.groups.roles`: of a group, a place in a launch's result, and what is there.
    key("mark", String(32)),
    key("session_id", String(80)),
    Index("ix_session_names_session_id", "session_id"),
)


async def name_session(connection: AsyncConnection, session_id: str, marks: Collection[str]) -> None:
    """What was launched does not change: marks that are there stay."""
    await insert_new(connection, session_names, [{"mark": mark, "session_id": session_id} for mark in sorted(marks)])


async def forget_names(connection: AsyncConnection, of: ColumnElement[bool]) -> None:
    """`of` is said of `session_names.c.session_id`."""
    await connection.execute(delete(session_names).where(of))


def has_one_of_each(marks: Sequence[Collection[str]]) -> ColumnElement[bool]:
    """Of a row of `group_sessions`; of the first `_MOST` of them, as SQLite puts no more than 500 queries together."""
    first, *others = (select(session_names.c.session_id).where(session_names.c.mark.in_(each)) for each in marks[:_MOST])
    return group_sessions.c.session_id.in_(first.intersect(*others) if others else first)
