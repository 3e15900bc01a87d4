"""INSERT statements that allow for existing rows, so that a step can be repeated."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from sqlalchemy import ColumnElement, Table, bindparam
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

T = TypeVar("T")


def insert_for(connection: AsyncConnection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """The dialect's INSERT, which knows ON CONFLICT."""
    return dialect_insert(connection.dialect.name, table)


def upsertion(
    connection: AsyncConnection,
    table: Table,
    values: Mapping[str, object],
    *,
    once: Collection[str] = (),
    where: ColumnElement[bool] | None = None,
) -> sqlite.Insert | postgresql.Insert:
    """`upsert` as a statement, with values that may be SQL expressions. Columns in `once`, and rows that `where` excludes, stay."""
    return _changing(insert_for(connection, table).values(**values), table, values, once, where)


async def upsert(connection: AsyncConnection, table: Table, values: Mapping[str, object]) -> None:
    """Insert the row, or set the given columns of the row with this primary key."""
    await upsert_all(connection, table, (values,))


async def upsert_all(
    connection: AsyncConnection, table: Table, rows: Sequence[Mapping[str, object]], *, once: Collection[str] = ()
) -> None:
    """`upsert` for rows that all have the same columns and different primary keys. Columns in `once` keep their first value."""
    if rows:
        statement = _upsert_statement(connection.dialect.name, table, tuple(rows[0]), frozenset(once))
        await connection.execute(statement, rows)


async def insert_new(connection: AsyncConnection, table: Table, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert the rows whose primary key is new; leave the others unchanged."""
    if rows:
        await connection.execute(_insert_new_statement(connection.dialect.name, table, tuple(rows[0])), rows)


# Building a statement costs more than sending it, and there are few of them.
@lru_cache
def _upsert_statement(dialect: str, table: Table, columns: tuple[str, ...], once: frozenset[str]) -> sqlite.Insert | postgresql.Insert:
    return _changing(dialect_insert(dialect, table).values({name: bindparam(name) for name in columns}), table, columns, once)


def _changing(
    insert: sqlite.Insert | postgresql.Insert,
    table: Table,
    columns: Iterable[str],
    once: Collection[str],
    where: ColumnElement[bool] | None = None,
) -> sqlite.Insert | postgresql.Insert:
    keys = table.primary_key.columns.keys()
    changed = {name: insert.excluded[name] for name in columns if name not in keys and name not in once}
    return insert.on_conflict_do_update(index_elements=keys, set_=changed, where=where)


@lru_cache
def _insert_new_statement(dialect: str, table: Table, columns: tuple[str, ...]) -> sqlite.Insert | postgresql.Insert:
    keys = [column.name for column in table.primary_key.columns]
    return dialect_insert(dialect, table).values({name: bindparam(name) for name in columns}).on_conflict_do_nothing(index_elements=keys)


def batches(entries: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The entries, at most `size` of them at a time."""
    return (entries[at : at + size] for at in range(0, len(entries), size))


def dialect_insert(dialect: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    """The INSERT of a dialect, by its name."""
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
