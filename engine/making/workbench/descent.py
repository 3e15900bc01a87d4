"""Opens files in a folder that programs write to, without following links that they may put there meanwhile."""

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.making.workbench.refusal import BenchRefused
from engine.runtimes.sandbox.identity import Identity

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe is not waited for.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_IN_THE_WAY = {errno.ENOTDIR, errno.ELOOP}


@contextmanager
def folder_at(root: Path, parts: Sequence[str], *, made_for: Identity | None = None, make: bool = False) -> Generator[int]:
    """A descriptor of the folder; `make`: missing folders are made, for that user. Raises BenchRefused, OSError. Blocks."""
    fd = os.open(root, _FOLDER)
    try:
        for count, name in enumerate(parts, 1):
            inner = _step(fd, name, "/".join(parts[:count]), made_for, make=make)
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


@contextmanager
def opened_file(root: Path, parts: Sequence[str]) -> Generator[int]:
    """A descriptor to read a regular file. Raises BenchRefused, OSError (FileNotFoundError). Blocks."""
    with folder_at(root, parts[:-1]) as folder:
        shown = "/".join(parts)
        try:
            fd = os.open(parts[-1], _FILE, dir_fd=folder)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise BenchRefused(f"{shown!r} is a link, and links are not followed. Name the file itself.") from error
            raise
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise BenchRefused(f"{shown!r} is no regular file.")
            yield fd
        finally:
            os.close(fd)


def _step(fd: int, name: str, shown: str, made_for: Identity | None, *, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=fd)
    except FileNotFoundError:
        if not make:
            raise
    except OSError as error:
        if error.errno in _IN_THE_WAY:
            raise BenchRefused(f"{shown!r} is no folder but a file or a link, so there can be nothing in it.") from error
        raise
    with suppress(FileExistsError):  # a program was quicker
        os.mkdir(name, 0o755, dir_fd=fd)
    inner = os.open(name, _FOLDER, dir_fd=fd)
    if made_for is not None:
        os.fchown(inner, made_for.uid, made_for.gid)
    return inner
