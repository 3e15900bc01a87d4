"""Copies repositories within limits of size."""

import errno
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from engine.disk.removal import remove, shown
from engine.making.repositories.trees import LEFT_OUT, Tree
from engine.registry.archives import MAX_BYTES, MAX_FILES
from engine.runtimes.folders import entries

_MIB = 1024 * 1024
_DEEPEST = 200
"""Nested folders. Python's own limit is a thousand."""
_THEIRS = frozenset({errno.EACCES, errno.ENAMETOOLONG, errno.ELOOP})
"""Errors that are the repository's fault, not this machine's."""


@dataclass(frozen=True, slots=True)
class Room:
    """Limits of a copy: bytes (holes in files count) and files. Folders with a name in `left_out` are not copied."""

    size: int = MAX_BYTES
    files: int = MAX_FILES
    left_out: frozenset[str] = LEFT_OUT


BUILDING = Room(512 * _MIB, 20_000)
"""The room for a copy while a project is built. The tool's own room is smaller."""


def require_room(repository: Path) -> None:
    """Raises ValueError if the repository is larger than a tool may be. Blocks."""
    tree = Tree.read(repository)
    size, count = tree.extent.size, tree.extent.count
    if count > MAX_FILES:
        more = "" if tree.is_whole else "more than "
        raise ValueError(f"The repository holds {more}{count:,} files, and a tool may have {MAX_FILES:,}. {_REMEDY}")
    if size > MAX_BYTES:
        largest = max(tree.files, key=tree.size_of)
        raise ValueError(
            f"The repository holds {size / _MIB:.1f} MiB, and a tool may have {MAX_BYTES // _MIB}; the largest file is {largest} with "
            f"{tree.size_of(largest) / _MIB:.1f} MiB. {_REMEDY}"
        )


def part_with_room(repository: Path, project: str, inside: str) -> Path:
    """The repository, or the folder of the project if only that is small enough and `inside` lies in it. Raises ValueError. Blocks."""
    try:
        require_room(repository)
    except ValueError:
        folder, path = PurePosixPath(project), PurePosixPath(inside)
        if not folder.parts or ".." in path.parts or not path.is_relative_to(folder):
            raise
        require_room(repository / folder)
        return repository / folder
    return repository


_REMEDY = "Leave out of it what the app does not need, or have the app fetch it when it runs."


def pack_repository(repository: Path, into: Path, room: Room | None = None) -> None:
    """Makes the folder `into` anew, a copy of the repository. Raises ValueError, also if it does not fit; OSError. Blocks."""
    remove(into)
    into.parent.mkdir(parents=True, exist_ok=True)
    copy_into(repository, into, room or Room())
    open_to_all(into)


def require_fit(repository: Path, room: Room) -> None:
    """Raises ValueError if a copy would exceed the room; OSError. Blocks."""
    for _ in _fitting(repository, room):
        pass


def open_to_all(folder: Path) -> None:
    """Makes the folder readable for all, because programs in the sandbox are another user. Blocks."""
    for entry in entries(folder):
        Path(entry.path).chmod(entry.stat().st_mode | (0o755 if entry.is_dir() else 0o644))
    folder.chmod(0o755)


def copy_into(repository: Path, target: Path, room: Room) -> None:
    """Copies into a new folder. Raises ValueError if it does not fit; OSError. Blocks."""
    target.mkdir()
    for source, path in _fitting(repository, room):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target / path)


def _fitting(repository: Path, room: Room) -> Iterator[tuple[Path, Path]]:
    """Files and their targets, counted before they are copied, because no sandbox limits this process."""
    size = count = 0
    try:
        for source, path in _files_of(repository, room.left_out):
            size, count = size + source.stat().st_size, count + 1
            _require_fitting(size, count, path, room)
            yield source, path
    except OSError as error:
        if error.errno not in _THEIRS:
            raise
        raise ValueError(f"A file or folder cannot be read: {error.strerror}. Give it another place, or other rights.") from error


def _require_fitting(size: int, count: int, path: Path, room: Room) -> None:
    if len(path.parts) > _DEEPEST:
        raise ValueError(f"{shown(path)[:200]}… lies in more than {_DEEPEST} folders. Put it elsewhere.")
    if size > room.size or count > room.files:
        most = f"{room.size / _MIB:g} MiB" if size > room.size else f"{room.files:,} files"
        raise ValueError(f"With {shown(path)} there are more than {most}, where a link counts as the file that it leads to. {_REMEDY}")


def _files_of(repository: Path, left_out: frozenset[str]) -> Iterator[tuple[Path, Path]]:
    """Regular files and their targets. A link to a file counts as a copy, a link to a folder is left out."""
    root = repository.resolve()
    waiting = [repository]
    while waiting:
        with os.scandir(waiting.pop()) as found:
            listed = sorted(found, key=lambda entry: entry.name)
        for entry in listed:
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                waiting += [path] if entry.name not in left_out else []
            elif (source := _file_at(path, root)) is not None:
                yield source, path.relative_to(repository)


def _file_at(path: Path, root: Path) -> Path | None:
    """The file, or the file in the repository that a link leads to."""
    if not path.is_symlink():
        return path if path.is_file() else None
    try:
        leads_to = path.resolve(strict=True)
    except (OSError, RuntimeError):  # a RuntimeError: a loop of links
        return None
    return leads_to if leads_to.is_relative_to(root) and leads_to.is_file() else None
