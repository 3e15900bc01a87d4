"""Folders that are written once and then sealed."""

import os
from collections.abc import Generator
from pathlib import Path

from engine.runtimes.sandbox.identity import OURS

_WRITE = 0o222
_LOOK = 0o500


def entries(folder: Path) -> Generator[os.DirEntry[str]]:
    """All entries below the folder, each folder before its content; links are not followed. Raises OSError, also for too long paths.

    Without recursion, unlike `os.walk` before Python 3.12.
    """
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as found:
            for entry in found:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def seal(folder: Path) -> None:
    """Make the folder and its content ours and read-only, as its maker's user may be another tool's next. Raises OSError.

    Its readers are other users than its maker, so everything that the maker could read becomes readable for all.
    """
    for entry in entries(folder):
        _take_back(Path(entry.path))
        # A link may lead out of the folder, to an interpreter.
        if not entry.is_symlink():
            mode = entry.stat(follow_symlinks=False).st_mode
            # A folder closed to us could not be sealed inside.
            Path(entry.path).chmod(_sealed(mode | _LOOK if entry.is_dir() else mode))
    _take_back(folder)  # last: after a crash, its owner shows that it is not sealed
    folder.chmod(_sealed(folder.stat().st_mode))


def _sealed(mode: int) -> int:
    owners = mode & _LOOK
    return mode & ~_WRITE | owners >> 3 | owners >> 6


def _take_back(path: Path) -> None:
    if path.lstat().st_uid != OURS.uid:
        OURS.own(path)
