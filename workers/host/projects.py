"""The projects of this host's local tools, fetched from the content store."""

from pathlib import Path

import structlog

from engine.registry.archives import ProjectArchives
from engine.runtimes.projects import Projects
from engine.store.catalog_entries import CatalogEntryTable
from engine.store.files import FileStore
from toolagent.core.failures import ContentDamagedError, ContentMissingError, StoreUnavailableError
from workers.parts import Store
from workers.state.directory import StateDirectory

__all__ = ["StoredArchives", "projects_of", "sweep_projects"]

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class StoredArchives:
    """Archives by their file ids; a damaged or missing one is made again, where the folder is that it was made of."""

    def __init__(self, files: FileStore, archives: ProjectArchives) -> None:
        self._files, self._archives = files, archives

    async def fetch(self, content: str, folder: Path) -> Path:
        """See `engine.runtimes.projects.Archives`."""
        file = await self._files.get(content)
        if file is None:
            raise ContentMissingError(content)
        try:
            return await self._files.materialise(file, folder)
        except (ContentMissingError, ContentDamagedError):
            if not await self._archives.remake(content):
                raise
            _log.warning("archive_made_again", archive=content, name=file.name)
            return await self._files.materialise(file, folder)


def projects_of(store: Store, state: StateDirectory) -> Projects:
    return Projects(state.projects, StoredArchives(store.files, store.archives))


async def sweep_projects(projects: Projects, store: Store) -> None:
    """Remove those that no version of a tool refers to. To be called before any tool runs."""
    try:
        wanted = set((await CatalogEntryTable(store.database).content_of()).values())
    except StoreUnavailableError as error:
        _log.warning("projects_not_swept", reason=str(error))
        return
    for name in await projects.sweep(wanted):
        _log.info("removed_project", name=name)
