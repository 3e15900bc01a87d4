"""Bytes in a folder of this machine, one file each."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from engine.store.content.faults import named_disk_faults
from engine.store.content.incoming import Incoming
from engine.store.content.store import ContentEntry
from toolagent.core.failures import ContentMissingError

__all__ = ["FolderContent"]

_CHUNK = 1 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")


class FolderContent:
    """`<folder>/ab/abcd…`. What comes in must be on the same file system as the folder: it gets a second name there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, content: Incoming) -> None:
        with named_disk_faults(self._folder):
            await asyncio.to_thread(_link, content.path, self._path(content.sha256))

    async def read(self, sha256: str, start: int = 0, length: int | None = None) -> AsyncGenerator[bytes]:
        left = length
        try:
            source = await asyncio.to_thread(self._path(sha256).open, "rb")
        except FileNotFoundError:
            raise ContentMissingError(sha256) from None
        with source, named_disk_faults(self._folder):
            await asyncio.to_thread(source.seek, start)
            while left is None or left > 0:
                chunk = await asyncio.to_thread(source.read, _CHUNK if left is None else min(_CHUNK, left))
                if not chunk:
                    return
                left = None if left is None else left - len(chunk)
                yield chunk

    async def size(self, sha256: str) -> int | None:
        with named_disk_faults(self._folder):
            try:
                return (await asyncio.to_thread(self._path(sha256).stat)).st_size
            except FileNotFoundError:
                return None

    async def delete(self, sha256: str) -> None:
        with named_disk_faults(self._folder):
            await asyncio.to_thread(self._path(sha256).unlink, missing_ok=True)

    async def entries(self) -> AsyncGenerator[ContentEntry]:
        with named_disk_faults(self._folder):
            found = await asyncio.to_thread(_entries, self._folder)
        for entry in found:
            yield entry

    def _path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        target.hardlink_to(source)
    # The new name has to survive a loss of power as the bytes do.
    directory = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _entries(folder: Path) -> list[ContentEntry]:
    found: list[ContentEntry] = []
    for path in folder.glob("??/*"):
        try:
            if _SHA256.fullmatch(path.name):
                found.append(ContentEntry(path.name, datetime.fromtimestamp(path.stat().st_mtime, UTC)))
        except FileNotFoundError:  # another host has just removed it
            continue
    return found
