"""Removes what a program left, however deep it is and whatever rights it took away."""

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["remove"]

_OWN = 0o700


def remove(folder: Path) -> None:
    """The folder and all in it; of a link only the link. What is not there is no error; what cannot be removed stays."""
    numbers = itertools.count()
    with contextlib.suppress(OSError):
        if folder.is_symlink() or not folder.is_dir():
            folder.unlink()
            return
        folder.chmod(_OWN)
        before = -1
        # Folders are moved up before theirs are looked at: a path has an end, a tree has none.
        while (count := len(entries := os.listdir(folder))) and count != before:  # noqa: PTH208 - names alone
            before = -1 if _emptied(folder, entries, numbers) else count
        folder.rmdir()


def _emptied(folder: Path, entries: list[str], numbers: Iterator[int]) -> bool:
    """Whether any of these went."""
    went = False
    for name in entries:
        path = folder / name
        with contextlib.suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                path.chmod(_OWN)
                _lift(path, folder, numbers)
                path.rmdir()
            else:
                path.unlink()
            went = True
    return went


def _lift(inner: Path, folder: Path, numbers: Iterator[int]) -> None:
    for child in list(inner.iterdir()):
        if child.is_dir() and not child.is_symlink():
            child.chmod(_OWN)
            child.rename(folder / f".lifted-{os.getpid()}-{next(numbers)}")
        else:
            child.unlink()
