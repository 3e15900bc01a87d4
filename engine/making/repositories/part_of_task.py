"""Finds the part of a repository that a task means: all of it, a folder, or one file."""

import contextlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from engine.making.repositories.addresses import CloneFailed, CloneFailure
from engine.making.repositories.trees import Tree

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Meant:
    """A folder, or only `file` in it."""

    folder: Path
    file: PurePosixPath | None = None

    def tree(self) -> Tree:
        """Blocks."""
        if self.file is None:
            return Tree.read(self.folder)
        return Tree(self.folder, (self.file,), (self.folder / self.file).stat().st_size, is_whole=True)


def meant_in(clone: Path, path: str) -> Meant:
    """Raises CloneFailed if the path is not in the clone, or a link leads out of it. Blocks."""
    with contextlib.suppress(OSError, RuntimeError, ValueError):  # loops of links, long or invalid names
        found = (clone / path).resolve()
        if found.is_relative_to(clone.resolve()):
            if found.is_dir():
                return Meant(found)
            if found.is_file():
                return Meant(found.parent, PurePosixPath(found.name))
    if not clone.is_dir():
        raise CloneFailed(CloneFailure.NOT_FOUND, "The clone of the repository is gone from this host. Begin the task again.")
    there = ", ".join(sorted(one.name for one in clone.iterdir() if one.is_dir())[:_SHOWN]) or "none"
    raise CloneFailed(
        CloneFailure.NOT_FOUND, f"path: There is no folder and no file {path!r} in the repository. Folders at its top: {there}."
    )
