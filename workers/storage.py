"""The database and the content store of one process, ready for use."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

from engine.store.database import Database, UnusableDatabaseError, migrate
from engine.upkeep.removal.kept_files import Retention, sweeping_files
from toolagent.core.failures import StoreUnwritableError
from workers.failures import CannotRun
from workers.parts import Store
from workers.settings.kept import RetentionSettings
from workers.settings.whole import Settings
from workers.state.directory import StateDirectory


@asynccontextmanager
async def opened_store(settings: Settings, state: StateDirectory) -> AsyncGenerator[Store]:
    """The tables, brought to what the code means. Raises CannotRun."""
    named = settings.database.database_url
    url = named or state.database_url
    try:
        await asyncio.to_thread(settings.state.files_folder.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(state.content.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(migrate, url, state.migration_lock)
        database = Database(url, pool_size=settings.database.database_pool_size)
    except UnusableDatabaseError as error:
        if isinstance(error.__cause__, StoreUnwritableError):
            raise CannotRun(str(error)) from error
        place = "of TOOL_AGENT_DATABASE_URL" if named else f"{str(state.database)!r}"
        raise CannotRun(f"The database {place} cannot be used: {str(error).rstrip('.')}.") from error
    except OSError as error:
        place = error.filename or state.root
        raise CannotRun(
            f"{str(place)!r} cannot be written ({error.strerror}). Make room there, make it writable for the service's user, or set "
            "TOOL_AGENT_STATE_DIR (TOOL_AGENT_FILES_ROOT for the files of calls) to a folder that can."
        ) from error
    try:
        store = Store(database, settings, state)
        async with sweeping_files(database, store.content, state.content, _retention(settings.retention)):
            try:
                yield store
            finally:
                store.audit.close()
    finally:
        await database.close()


def _retention(settings: RetentionSettings) -> Retention:
    return Retention(
        files=timedelta(hours=settings.file_retention_hours),
        tasks=timedelta(hours=settings.task_retention_hours),
        chats=timedelta(hours=settings.chat_retention_hours),
    )
