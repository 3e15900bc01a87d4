"""Files of this machine, on their way into the store and out of it: names, reading, copies."""

import asyncio
import errno
import os
import stat
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import BinaryIO

__all__ = ["copy_of", "pieces_of", "safe_name"]

_CHUNK = 1 << 20


def safe_name(name: str) -> str:
    """The last part of whatever path was said, without what would make it another path or a control character."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    cleaned = "".join(character for character in last if character.isprintable()).strip()
    stem, dot, ending = cleaned.rpartition(".")
    shortened = f"{_cut(stem, 180)}{dot}{_cut(ending, 20)}" if dot else _cut(cleaned, 200)
    return shortened if shortened.strip(".") else "file"


async def pieces_of(path: Path) -> AsyncIterator[bytes]:
    """The bytes of a regular file. Raises OSError, also for anything else."""
    with await asyncio.to_thread(_open, path) as source:
        while chunk := await asyncio.to_thread(source.read, _CHUNK):
            yield chunk


async def copy_of(pieces: AsyncGenerator[bytes], target: Path) -> None:
    """Write them to the file. Raises OSError."""
    async with aclosing(pieces):
        with await asyncio.to_thread(target.open, "wb") as copy:
            async for piece in pieces:
                await asyncio.to_thread(copy.write, piece)


def _cut(text: str, limit: int) -> str:
    """File systems count bytes."""
    return text.encode("utf-8", "ignore")[:limit].decode("utf-8", "ignore")


def _open(path: Path) -> BinaryIO:
    """Only a regular file: opening or reading a pipe would wait for ever for its other end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return os.fdopen(descriptor, "rb")
