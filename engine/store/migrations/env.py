"""Runs Alembic in one transaction, alone among the migrations of this database."""

import asyncio

from alembic import context
from sqlalchemy import Connection, Engine, text
from sqlalchemy.ext.asyncio import AsyncEngine

from engine.store.connection.engines import WRITES, make_migration_engine
from engine.store.tables import METADATA

_ALONE = text("SELECT pg_advisory_xact_lock(hashtextextended('tool-agent migrations', 0))")


def _run(connection: Connection) -> None:
    # SQLite can also change tables in a transaction, which Alembic does not expect.
    context.configure(connection=connection, target_metadata=METADATA, render_as_batch=True, transactional_ddl=True)
    with context.begin_transaction():
        context.run_migrations()


def _migrate_sqlite(engine: Engine) -> None:
    with engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
        _run(connection)


async def _migrate_postgres(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="READ COMMITTED")
        async with connection.begin():
            await connection.execute(_ALONE)
            await connection.run_sync(_run)


def _migrate() -> None:
    url = context.config.get_main_option("sqlalchemy.url")
    if url is None:
        raise ValueError("sqlalchemy.url is not set")
    match make_migration_engine(url):
        case Engine() as engine:
            _migrate_sqlite(engine)
        case AsyncEngine() as engine:
            asyncio.run(_migrate_postgres(engine))


_migrate()
