"""Counts, lists and reads the files of an untrusted repository within limits, without following links."""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Self

LEFT_OUT = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".pytest_cache", ".ruff_cache", ".mypy_cache"})
"""Folders that are not a project's own."""

_MAX_FILES = 20_000
_MAX_DEPTH = 40
_MAX_READ = 512 * 1024


@dataclass(frozen=True, slots=True)
class Extent:
    """The bytes of all files in a folder, and the number of files, folders and links."""

    size: int
    count: int


def extent_of(folder: Path, max_bytes: int, max_count: int) -> Extent:
    """Stops at the limits. Files that vanish meanwhile do not count. Blocks."""
    size = count = 0
    for entry in _entries(folder):
        count += 1
        with contextlib.suppress(OSError):
            size += entry.stat(follow_symlinks=False).st_size
        if size > max_bytes or count > max_count:
            break
    return Extent(size, count)


class Tree:
    """`files` are the regular files of a folder, the nearest first; `extent` is their size and number.

    `is_whole`: these are all files. Reading blocks.
    """

    def __init__(self, folder: Path, files: Sequence[PurePosixPath], size: int, *, is_whole: bool) -> None:
        self.folder, self.is_whole = folder, is_whole
        self.files = tuple(sorted(files, key=lambda path: (len(path.parts), str(path))))
        self.extent = Extent(size, len(self.files))
        self._known = frozenset(files)
        self._folders = frozenset(parent for path in files for parent in path.parents)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Lists the files, up to limits of number and depth."""
        found: list[PurePosixPath] = []
        size = 0
        is_whole = True
        for path, entry in _listed(folder):
            if len(found) == _MAX_FILES:
                is_whole = False
                break
            if path is None:
                is_whole = False
                continue
            with contextlib.suppress(OSError):
                size += entry.stat(follow_symlinks=False).st_size
                found.append(path)
        return cls(folder, found, size, is_whole=is_whole)

    def text(self, path: PurePosixPath | str, limit: int = _MAX_READ) -> str | None:
        """The text of a file; None if it is larger than `limit` bytes, no UTF-8, a link, or cannot be read."""
        return _text(self.folder / path, limit) if PurePosixPath(path) in self._known else None

    def size_of(self, path: PurePosixPath) -> int:
        """The size in bytes; 0 if the file is gone. Blocks."""
        try:
            return (self.folder / path).lstat().st_size
        except OSError:
            return 0

    def has(self, path: PurePosixPath | str) -> bool:
        """Whether there is such a regular file."""
        return PurePosixPath(path) in self._known

    def has_folder(self, path: PurePosixPath | str) -> bool:
        """Whether there are files in this folder or below."""
        return PurePosixPath(path) in self._folders


def _text(path: Path, limit: int) -> str | None:
    try:
        # Waits for no pipe, follows no link.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            content = file.read(limit + 1)
        return None if len(content) > limit else content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None


def _listed(folder: Path) -> Iterator[tuple[PurePosixPath | None, os.DirEntry[str]]]:
    """Regular files with their paths, the nearest first. A folder that is too deep has no path."""
    waiting = [(str(folder), PurePosixPath())]
    while waiting:
        following: list[tuple[str, PurePosixPath]] = []
        for place, here in waiting:
            for entry in _in(place):
                path = here / os.fsencode(entry.name).decode("utf-8", "replace")
                if entry.is_file(follow_symlinks=False):
                    yield path, entry
                elif entry.is_dir(follow_symlinks=False) and entry.name not in LEFT_OUT:
                    if len(path.parts) > _MAX_DEPTH:
                        yield None, entry
                    else:
                        following.append((entry.path, path))
        waiting = following


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    waiting = [str(folder)]
    while waiting:
        for entry in _in(waiting.pop()):
            yield entry
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)


def _in(place: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as found:
            return list(found)
    except OSError:
        return []
