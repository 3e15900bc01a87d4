"""Archives of local tools in the content store."""

from pathlib import Path

import structlog

from engine.registry.archives import ProjectArchives
from engine.store.files import FileStore
from toolagent.core.failures import ContentDamagedError, ContentMissingError

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class StoredArchives:
    """Archives by file id. A damaged or missing one is made again from its folder, if that exists here."""

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
