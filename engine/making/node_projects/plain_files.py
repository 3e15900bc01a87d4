"""Reads and writes what a build may have had in its hands: it may have put links, pipes and much else in the place of files."""

import os
import stat
from pathlib import Path

from engine.making.failures import LockFailed, NotWanted

MOST_BYTES = 16 * 1024 * 1024
_FOR_ALL = 0o777


def require_plain(work: Path, folder: Path) -> None:
    """Each folder on the way from `work` to there is one, and no link. While no program of the task runs. Raises LockFailed. Blocks."""
    inside = folder.relative_to(work)
    for at in (work, *(work.joinpath(*inside.parts[: depth + 1]) for depth in range(len(inside.parts)))):
        try:
            is_folder = stat.S_ISDIR(at.lstat().st_mode)
        except OSError:
            is_folder = False
        if not is_folder:
            where = at.relative_to(work).as_posix()
            raise LockFailed(
                f"The build took away the folder {where!r}, or put something else in its place. Have it leave its project there."
            )


def new_folder(work: Path, name: str) -> Path:
    """Below `work`, where there is none yet; writable by all users. Raises LockFailed. Blocks."""
    require_plain(work, work)
    try:
        (work / name).mkdir()
    except FileExistsError as error:
        raise LockFailed(f"The build left a file or folder {name!r} above its project. Have it write to its project only.") from error
    (work / name).chmod(_FOR_ALL)
    return work / name


def opened(path: Path) -> int:
    """A descriptor of a regular file, for reading; what is no file is not waited for. Raises OSError, NotWanted. Blocks."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise NotWanted(f"{path.name} is no file.")


def text_of(path: Path) -> str:
    """Raises NotWanted for what is no file, or is too large. Blocks."""
    try:
        descriptor = opened(path)
    except OSError as error:
        raise NotWanted(f"There is no {path.name} that can be read.") from error
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise NotWanted(f"{path.name} is larger than {MOST_BYTES} bytes.")
    return content.decode(errors="replace")
