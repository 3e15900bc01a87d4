"""The database and the content store of one process, ready for use."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from engine.store.database import Database, UnusableDatabaseError, migrate
from workers.content import sweeping
from workers.failures import CannotRun
from workers.parts import Store
from workers.settings import Settings
from workers.state import StateDirectory

__all__ = ["opened_store"]


@asynccontextmanager
async def opened_store(settings: Settings, state: StateDirectory) -> AsyncGenerator[Store]:
    """The tables, brought to what the code means. Raises CannotRun."""
    await asyncio.to_thread(settings.files_folder.mkdir, parents=True, exist_ok=True)
    url = settings.database_url or state.database_url
    try:
        await asyncio.to_thread(migrate, url, state.migration_lock)
        database = Database(url, pool_size=settings.database_pool_size)
    except UnusableDatabaseError as error:
        raise CannotRun(f"The database of TOOL_AGENT_DATABASE_URL cannot be used: {error}.") from error
    try:
        store = Store(database, settings, state)
        async with sweeping(database, store.content, state.content, settings.file_retention_hours, settings.task_retention_hours):
            try:
                yield store
            finally:
                store.audit.close()
    finally:
        await database.close()
