"""Incoming bytes: gathered in a local file, so that their hash is known before they are stored."""

import asyncio
import errno
import hashlib
import os
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from toolagent.core.failures import ContentUnavailableError, FileTooLargeError, StoreFullError

STALE_S = 7200.0
"""An incoming file without a write for this long is abandoned. The clock may jump by an hour."""

_PREFIX = ".incoming-"
_PIECE = 1 << 20

# A quota and a file size limit count as full disks.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True, slots=True)
class Incoming:
    """A gathered file. A store reads `path` and leaves it. `size` is in bytes."""

    path: Path
    sha256: str
    size: int


@asynccontextmanager
async def incoming(folder: Path, chunks: AsyncIterator[bytes], max_bytes: int) -> AsyncGenerator[Incoming]:
    """Gather the stream in a file for the length of the block. Raises FileTooLargeError, StoreFullError, ContentUnavailableError."""
    with named_disk_faults(folder):
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        descriptor, name = await asyncio.to_thread(tempfile.mkstemp, dir=folder, prefix=_PREFIX)
    path = Path(name)
    try:
        yield await _gather(descriptor, path, chunks, max_bytes)
    finally:
        await asyncio.to_thread(path.unlink, missing_ok=True)


async def pieces_of(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), _PIECE):
        yield content[at : at + _PIECE]


async def _gather(descriptor: int, path: Path, chunks: AsyncIterator[bytes], max_bytes: int) -> Incoming:
    digest, size = hashlib.sha256(), 0
    # Unbuffered: a full disk must fail in the write, not when the file is closed.
    with os.fdopen(descriptor, "wb", buffering=0) as target:
        async for chunk in chunks:
            size += len(chunk)
            if size > max_bytes:
                raise FileTooLargeError(max_bytes)
            digest.update(chunk)
            with named_disk_faults(path.parent):
                await asyncio.to_thread(_write, target, chunk)
        with named_disk_faults(path.parent):
            await asyncio.to_thread(os.fsync, target.fileno())
    return Incoming(path, digest.hexdigest(), size)


def _write(target: BinaryIO, chunk: bytes) -> None:
    """A raw file may take less than it is given."""
    rest = memoryview(chunk)
    while rest:
        rest = rest[target.write(rest) :]


def remove_stale(folder: Path, older_than_s: float = STALE_S) -> int:
    """Remove incoming files of dead processes. Returns how many. Blocks."""
    removed = 0
    for path in folder.glob(f"{_PREFIX}*"):
        try:
            if path.stat().st_mtime < time.time() - older_than_s:
                path.unlink()
                removed += 1
        except FileNotFoundError:  # it has just come in
            continue
    return removed


@contextmanager
def named_disk_faults(folder: Path) -> Generator[None]:
    """Raises StoreFullError or ContentUnavailableError in place of an OSError."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StoreFullError(f"There is no room for the file in {folder} ({error.strerror}).") from error
        raise ContentUnavailableError(f"Files cannot be kept in {folder} ({error.strerror}).") from error
