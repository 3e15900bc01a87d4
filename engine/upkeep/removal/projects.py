"""Removes projects of local tools without a version, and unused environments."""

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
    """Removes projects that no version refers to. Call it before any tool runs."""
    try:
        wanted = set((await CatalogEntryTable(database).content_of()).values())
    except StoreUnavailableError as error:
        _log.warning("projects_not_swept", reason=str(error))
        return
    for name in await projects.sweep(wanted):
        _log.info("removed_project", name=name)


def tidied(environments: ScriptEnvironments) -> AbstractAsyncContextManager[None]:
    """Removes unused environments now and every hour until the block ends."""

    async def tidy() -> None:
        for name in await environments.tidy():
            _log.info("removed_environment", name=name)

    return repeated(tidy, _EVERY_S, "tidy environments")
