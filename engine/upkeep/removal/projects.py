"""Projects of local tools that no version refers to any more."""

import structlog

from engine.runtimes.projects import Projects
from engine.store.catalog_entries import CatalogEntryTable
from engine.store.database import Database
from toolagent.core.failures import StoreUnavailableError

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def sweep_projects(projects: Projects, database: Database) -> None:
    """Remove them. To be called before any tool runs."""
    try:
        wanted = set((await CatalogEntryTable(database).content_of()).values())
    except StoreUnavailableError as error:
        _log.warning("projects_not_swept", reason=str(error))
        return
    for name in await projects.sweep(wanted):
        _log.info("removed_project", name=name)
