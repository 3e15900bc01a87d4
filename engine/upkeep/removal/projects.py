"""Projects of local tools that no version refers to any more, and environments that no tool needs."""

from contextlib import AbstractAsyncContextManager

import structlog

from engine.runtimes.environments.environments import ScriptEnvironments
from engine.runtimes.projects import Projects
from engine.store.catalog_entries import CatalogEntryTable
from engine.store.database import Database
from engine.upkeep.rounds import repeated
from toolagent.core.failures import StoreUnavailableError

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_EVERY_S = 3600.0


async def sweep_projects(projects: Projects, database: Database) -> None:
    """Remove projects that no version refers to. To be called before any tool runs."""
    try:
        wanted = set((await CatalogEntryTable(database).content_of()).values())
    except StoreUnavailableError as error:
        _log.warning("projects_not_swept", reason=str(error))
        return
    for name in await projects.sweep(wanted):
        _log.info("removed_project", name=name)


def tidied(environments: ScriptEnvironments) -> AbstractAsyncContextManager[None]:
    """Environments that no tool needs are removed now and once an hour, until the block ends."""

    async def tidy() -> None:
        for name in await environments.tidy():
            _log.info("removed_environment", name=name)

    return repeated(tidy, _EVERY_S, "tidy environments")
