"""Writing a row whether or not it is there: what makes repeated steps harmless."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

__all__ = ["insert_for", "insert_new", "upsert"]


def insert_for(connection: AsyncConnection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """The dialect's INSERT, which knows ON CONFLICT."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


async def upsert(connection: AsyncConnection, table: Table, values: Mapping[str, object], *, once: Collection[str] = ()) -> None:
    """Insert the row, or set the given columns of the row with this primary key, but for those that are written once."""
    keys = [column.name for column in table.primary_key.columns]
    statement = insert_for(connection, table).values(**values)
    changed = {name: statement.excluded[name] for name in values if name not in keys and name not in once}
    await connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changed))


async def insert_new(connection: AsyncConnection, table: Table, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert the rows that are not there; leave the others as they are."""
    if rows:
        keys = [column.name for column in table.primary_key.columns]
        await connection.execute(insert_for(connection, table).on_conflict_do_nothing(index_elements=keys), rows)
