"""The folders of the running calls of a host."""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import structlog

from engine.calls.file_parameters import CallFolder
from engine.disk.leftovers import PROMPT_S, discard
from toolagent.contracts.manifest import ToolManifest

_SWEEP_S = 5.0
_MOST = 10_000
"""Limits of one sweep; the next one continues."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class CallFolders:
    """Uses `root` alone. Tools may write beside the folders of their calls: a sweep removes what belongs to no running call."""

    def __init__(self, root: Path, patience_s: float = PROMPT_S) -> None:
        self.root, self._patience_s = root.resolve(), patience_s
        self._open: set[Path] = set()

    def of(self, call_id: str, manifest: ToolManifest, place: str | None = None) -> CallFolder:
        """A context that has the folder of the call."""
        return CallFolder(self.root, call_id, manifest, place, self._open, patience_s=self._patience_s)

    async def sweep(self) -> tuple[str, ...]:
        """Removes what belongs to no running call. Returns the names."""
        return await asyncio.to_thread(self._sweep)

    def _sweep(self) -> tuple[str, ...]:
        until = time.monotonic() + _SWEEP_S
        gone: list[str] = []
        for path in self._found():
            # A call registers its folders before it creates them, so a found folder that is not registered belongs to no call.
            if path not in self._open:
                discard(path, max(0.0, until - time.monotonic()))
                gone.append(os.fsencode(path.relative_to(self.root)).decode("utf-8", "replace"))
            if time.monotonic() > until or len(gone) == _MOST:
                break
        if gone:
            _log.warning("removed_strays_of_tools", count=len(gone), first=gone[0])
        return tuple(gone)

    def _found(self) -> Iterator[Path]:
        for place in _in(self.root):
            if place.name.startswith("."):
                yield place
            else:
                yield from _in(place)


def _in(folder: Path) -> Iterator[Path]:
    """The entries of a folder, none of a link. The folder may disappear meanwhile."""
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as found:
        if not folder.is_symlink():
            yield from (folder / entry.name for entry in found)
