"""The database of a service, which may run or not."""

import asyncio

from engine.store.database import Database, UnusableDatabaseError
from workers.failures import CannotRun
from workers.settings.kept import DatabaseSettings
from workers.state.directory import StateDirectory


async def kept_database(settings: DatabaseSettings, state: StateDirectory) -> Database:
    """The caller closes it. Raises CannotRun if there is no database, or it cannot be used."""
    if settings.database_url is None and not await asyncio.to_thread(state.database.is_file):
        place = str(state.database)
        raise CannotRun(f"There is no database at {place!r}. Set TOOL_AGENT_STATE_DIR or TOOL_AGENT_DATABASE_URL to the service's.")
    try:
        return Database(settings.database_url or state.database_url)
    except UnusableDatabaseError as error:
        raise CannotRun(f"The database of TOOL_AGENT_DATABASE_URL cannot be used: {error}.") from error
