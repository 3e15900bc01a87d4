"""Checks that folders have free disk space and can be written."""

import asyncio
import errno
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from toolagent.core.failures import StoreUnwritableError

_ROOM = 1 << 20
"""Bytes. With less, one call may still succeed and the next one fail."""

_PIECE = bytes(1 << 16)


def require_room(folders: Mapping[str, Path]) -> None:
    """Raises StoreUnwritableError for the first folder whose disk is full. Does not block: no disk is read."""
    for name, folder in folders.items():
        with suppress(OSError):  # a missing folder is noticed at the next write
            status = os.statvfs(folder)
            free = status.f_bfree if os.geteuid() == 0 else status.f_bavail
            if free * status.f_frsize < _ROOM:
                raise _unwritable("disk_full", f"{name}: the disk is full.")


async def require_writing(folders: Mapping[str, Path]) -> None:
    """Write a little to each folder. Raises StoreUnwritableError for the first that cannot be written."""
    require_room(folders)
    for name, folder in folders.items():
        try:
            await asyncio.to_thread(_write, folder)
        except OSError as error:
            raise unwritten(name, error) from error


def unwritten(name: str, error: OSError) -> StoreUnwritableError:
    """The failure of a write to this folder."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _unwritable("disk_full", f"{name}: the disk is full.")
    return _unwritable("cannot_write", f"{name} cannot be written: {error.strerror}.")


def _unwritable(cause: str, told: str) -> StoreUnwritableError:
    return StoreUnwritableError(cause, told, told)


def _write(folder: Path) -> None:
    """Write to a nameless file, which leaves nothing behind."""
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=".writable-")
    try:
        Path(name).unlink()
        rest = memoryview(_PIECE)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
