"""Bytes in a folder of this machine, one file each."""

import asyncio
import os
import re
import secrets
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from engine.disk.lasting import sync_folder
from engine.store.content.incoming import Incoming, named_disk_faults
from engine.store.content.store import ContentEntry
from toolagent.core.failures import ContentMissingError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_CHUNK = 1 << 20
_DAMAGED = "damaged"
_SHA256 = re.compile(r"[0-9a-f]{64}")


class FolderContent:
    """`<folder>/ab/abcd…`, damaged ones `<folder>/damaged/abcd…`.

    Incoming files must be on the same file system as the folder, because they are hard-linked.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, content: Incoming) -> None:
        await self._in_thread(_put, content.path, self._path(content.sha256))

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
        status = await self._status(sha256)
        return None if status is None else status.st_size

    async def mark(self, sha256: str) -> str | None:
        status = await self._status(sha256)
        return None if status is None else f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"

    async def delete(self, sha256: str) -> None:
        await self._in_thread(partial(self._path(sha256).unlink, missing_ok=True))

    async def entries(self) -> AsyncGenerator[ContentEntry]:
        for entry in await self._in_thread(_entries, self._folder, "??"):
            yield entry

    async def set_aside(self, sha256: str) -> None:
        await self._in_thread(_set_aside, self._path(sha256), self._damaged(sha256))

    async def is_set_aside(self, sha256: str) -> bool:
        return await self._in_thread(self._damaged(sha256).exists)

    async def damaged(self) -> AsyncGenerator[ContentEntry]:
        for entry in await self._in_thread(_entries, self._folder, _DAMAGED):
            yield entry

    async def forget_damaged(self, sha256: str) -> None:
        await self._in_thread(partial(self._damaged(sha256).unlink, missing_ok=True))

    async def _status(self, sha256: str) -> os.stat_result | None:
        with named_disk_faults(self._folder):
            try:
                return await asyncio.to_thread(self._path(sha256).stat)
            except FileNotFoundError:
                return None

    async def _in_thread(self, work: Callable[[*Ts], T], *arguments: *Ts) -> T:
        """Raises StoreFullError or ContentUnavailableError in place of an OSError."""
        with named_disk_faults(self._folder):
            return await asyncio.to_thread(work, *arguments)

    def _damaged(self, sha256: str) -> Path:
        return self._folder / _DAMAGED / sha256

    def _path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256


def _put(source: Path, target: Path) -> None:
    """Replace the file without checking the old one, which would take longer. Readers of the old one go on."""
    target.parent.mkdir(parents=True, exist_ok=True)
    second = source.with_name(f"{source.name}.{secrets.token_hex(4)}")
    second.hardlink_to(source)
    try:
        second.replace(target)
    finally:
        second.unlink(missing_ok=True)
    sync_folder(target.parent)


def _set_aside(path: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    try:
        path.replace(target)
    except FileNotFoundError:
        return
    os.utime(target)
    sync_folder(target.parent)


def _entries(folder: Path, inner: str) -> list[ContentEntry]:
    found: list[ContentEntry] = []
    for path in folder.glob(f"{inner}/*"):
        try:
            if _SHA256.fullmatch(path.name):
                found.append(ContentEntry(path.name, datetime.fromtimestamp(path.stat().st_mtime, UTC)))
        except FileNotFoundError:  # another host has just removed it
            continue
    return found
