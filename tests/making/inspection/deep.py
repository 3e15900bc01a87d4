"""A folder deeper than Python's recursion limit."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from engine.disk.removal import remove

DEPTH = 1_100


@contextmanager
def deep_folder(folder: Path, name: str = "d", depth: int = DEPTH) -> Generator[None]:
    """A deep folder with one file at its end. It is removed here, because pytest cannot remove it."""
    folder.mkdir()
    try:
        fd = os.open(folder, os.O_RDONLY)
        for _ in range(depth):
            os.mkdir(name, dir_fd=fd)
            inner = os.open(name, os.O_RDONLY, dir_fd=fd)
            os.close(fd)
            fd = inner
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        os.close(fd)
        yield
    finally:
        remove(folder)
