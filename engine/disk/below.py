"""Opens files and folders below a folder that tools write to, without following links."""

import asyncio
import errno
import os
import stat
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_PIECE = 1 << 18


@contextmanager
def folder_below(root: Path, *names: str) -> Generator[int]:
    """A descriptor of the folder `root/names…`. Raises OSError."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in names:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def open_below(root: Path, *names: str) -> BinaryIO:
    """Open the regular file `root/names…`. Raises OSError."""
    with folder_below(root, *names[:-1]) as folder:
        # Opening a pipe without a writer would block for ever.
        file = os.open(names[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "It is not a regular file")
    return os.fdopen(file, "rb")


async def read_in_pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(file.read, _PIECE):
        yield piece
