"""Reads and writes files that a build may have replaced by links, pipes or other things."""

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from engine.making.failures import LockFailed, NotWanted

MOST_BYTES = 16 * 1024 * 1024
_FOR_ALL = 0o777


def require_plain(work: Path, folder: Path) -> None:
    """Raises LockFailed if a folder on the way from `work` is a link or no folder. Call it while no program of the task runs. Blocks."""
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
    """Makes a folder in `work` that all users can write to. Raises LockFailed if the name is taken. Blocks."""
    require_plain(work, work)
    try:
        (work / name).mkdir()
    except FileExistsError as error:
        raise LockFailed(f"The build left a file or folder {name!r} above its project. Have it write to its project only.") from error
    (work / name).chmod(_FOR_ALL)
    return work / name


def opened(path: Path) -> int:
    """A descriptor to read a regular file. Follows no link, waits for no pipe. Raises OSError, NotWanted. Blocks."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise NotWanted(f"{path.name} is no file.")


def text_of(path: Path) -> str:
    """Raises NotWanted if the path is no file, or the file is too large. Blocks."""
    try:
        content = content_of(path)
    except OSError as error:
        raise NotWanted(f"There is no {path.name} that can be read.") from error
    if len(content) > MOST_BYTES:
        raise NotWanted(f"{path.name} is larger than {MOST_BYTES} bytes.")
    return content.decode(errors="replace")


def content_of(path: Path) -> bytes:
    """At most `MOST_BYTES` + 1 bytes. Raises OSError, NotWanted. Blocks."""
    with os.fdopen(opened(path), "rb") as file:
        return file.read(MOST_BYTES + 1)


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Replaces a file, which all users can write to. Raises OSError. Blocks."""
    path.unlink(missing_ok=True)
    path.write_text(json.dumps(value))
    path.chmod(0o666)
