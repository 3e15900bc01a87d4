"""Folders that are made once and never changed after that."""

import os
import shutil
from pathlib import Path

__all__ = ["remove", "seal"]

_WRITE = 0o222
_OWN_ALL = 0o700


def seal(folder: Path) -> None:
    """Take everybody's right to write to it and to all below it."""
    for inside, folders, files in os.walk(folder, topdown=False):
        for path in (*(Path(inside, name) for name in (*folders, *files)), Path(inside)):
            # A link may lead out, to an interpreter.
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & ~_WRITE)


def remove(folder: Path) -> None:
    """Remove it, sealed or not. What is not there is removed already; of a link only the link."""
    if folder.is_symlink():
        folder.unlink()
        return
    for inside, _, _ in os.walk(folder):
        Path(inside).chmod(_OWN_ALL)
    shutil.rmtree(folder, ignore_errors=True)
