"""The folder of environments: marks of complete ones, locks of used ones, their tasks, and the removal of unneeded ones."""

import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog
from filelock import FileLock, Timeout
from pydantic import BaseModel, ValidationError

from engine.disk.leftovers import SET_ASIDE, discard
from engine.disk.removal import remove
from engine.runtimes.folders import entries, seal
from engine.runtimes.sandbox.identity import PAYLOAD

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_GIB = 1024 * 1024 * 1024
_FRESH_S = 600.0
"""Seconds that a used environment stays: a process that just found it may not hold it yet."""
_BLOCK = 512
_OURS = re.compile(r"[0-9a-f]{32}(\.build|\.json|\.lock|\.part|\.task)?")


class Gone(Exception):
    """The environment was removed after it was found."""


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """Environments unused for `idle_s` seconds are removed; above `max_bytes` in all, those unused longest are removed first."""

    max_bytes: int = 20 * _GIB
    idle_s: float = 30 * 86_400.0


class _Mark(BaseModel):
    names: tuple[str, ...]
    bytes: int


def mark(root: Path, names: Sequence[str]) -> None:
    """Mark the environment in `root` as complete, with these packages. Raises OSError."""
    path = _mark_of(root)
    part = path.with_suffix(".part")
    part.write_text(json.dumps({"names": names, "bytes": _size(root)}), encoding="utf-8")
    part.replace(path)


def unmark(root: Path) -> None:
    _mark_of(root).unlink(missing_ok=True)


def is_marked(root: Path, names: Sequence[str] | None = None) -> bool:
    """Whether the environment is complete; with `names`, whether its packages are unchanged."""
    found = _read(_mark_of(root))
    return found is not None and (names is None or found.names == tuple(names))


def touch(root: Path, task: str) -> None:
    """Record a use now, by the task or for good. Does nothing if the environment is missing."""
    with contextlib.suppress(OSError):
        os.utime(_mark_of(root))
    if not task or _task_of(root) != task:
        _task_file(root).unlink(missing_ok=True)


def reserve(root: Path, task: str) -> None:
    """Record the task that the environment is made for, before it is marked; empty: for good. Raises OSError."""
    _task_file(root).unlink(missing_ok=True)
    if task:
        _task_file(root).write_text(task, encoding="utf-8")


def keep(folder: Path, task: str) -> None:
    """Keep the task's environments for good."""
    for root in _of_task(folder, task):
        _task_file(root).unlink(missing_ok=True)


def drop(folder: Path, task: str) -> tuple[str, ...]:
    """Remove the task's environments that nothing else used. Returns their names."""
    return tuple(root.name for root in _of_task(folder, task) if _remove_whole(root))


@contextlib.contextmanager
def held(root: Path) -> Generator[None]:
    """Prevents the removal of the environment during the block, by any process. Raises Gone if it is removed already."""
    try:
        fd = os.open(_mark_of(root), os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise Gone(root.name) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
        if os.fstat(fd).st_nlink == 0:
            raise Gone(root.name)
        yield
        os.utime(fd)
    finally:
        os.close(fd)


def tidy(folder: Path, limits: CacheLimits) -> tuple[str, ...]:
    """Remove environments over the limits that are not held, and leftovers of dead installations. Returns their names."""
    removed: list[str] = []
    try:
        for left in folder.glob(f"{SET_ASIDE}*"):
            discard(left)
        kept = [one for root in _roots(folder) if (one := _looked_at(root, removed)) is not None]
        total = sum(size for _, size, _ in kept)
        for used_at, size, root in sorted(kept):
            idle_s = time.time() - used_at
            is_over = total > limits.max_bytes and idle_s > _FRESH_S
            if (is_over or idle_s > limits.idle_s) and _remove_whole(root):
                removed.append(root.name)
                total -= size
    except (OSError, RuntimeError) as error:
        _log.warning("environments_not_tidied", folder=str(folder), reason=str(error))
    return tuple(removed)


def _roots(folder: Path) -> set[Path]:
    """The environments by their names' form: the setting may name a wrong folder, whose other files must stay."""
    found = folder.iterdir() if folder.is_dir() else ()
    return {path.with_suffix("") for path in found if _OURS.fullmatch(path.name)}


def _looked_at(root: Path, removed: list[str]) -> tuple[float, int, Path] | None:
    """A complete environment: when it was used, its size, its folder. Others are removed."""
    found = _read(_mark_of(root))
    if found is not None:
        if root.lstat().st_uid == PAYLOAD.uid:
            seal(root)  # made when all tools shared one user; other users may be unable to read it
        return _mark_of(root).stat().st_mtime, found.bytes, root
    if _remove_half(root):
        removed.append(root.name)
    return None


def _remove_half(root: Path) -> bool:
    """Remove an environment without a mark, unless it is being made. Returns whether it is gone."""
    lock = FileLock(root.with_suffix(".lock"))
    try:
        with lock.acquire(blocking=False):
            if is_marked(root):
                return False
            _remove_all(root)
            root.with_suffix(".lock").unlink(missing_ok=True)  # a waiter notices that the lock is gone, and makes a new one
            return True
    except Timeout:
        return False
    except (OSError, RuntimeError) as error:  # one failure must not stop the removal of the others
        _log.warning("environment_not_removed", folder=str(root), reason=str(error))
        return False


def _remove_whole(root: Path) -> bool:
    """Remove a complete environment. Returns False if it is held."""
    try:
        fd = os.open(_mark_of(root), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        # The mark first: after a crash the next sweep removes the rest.
        unmark(root)
        return _remove_half(root)
    finally:
        os.close(fd)


def _remove_all(root: Path) -> None:
    root.with_suffix(".part").unlink(missing_ok=True)
    for path in (root, account_of(root)):
        remove(path)
    _task_file(root).unlink(missing_ok=True)


def abandon(root: Path) -> None:
    """Remove the remains of a failed or cancelled installation, and its log folder."""
    for path in (root, account_of(root)):
        discard(path)


def account_of(root: Path) -> Path:
    """The folder with the installation's log."""
    return root.with_suffix(".build")


def _mark_of(root: Path) -> Path:
    """The mark lies beside the folder: an installation could put anything into it, including links."""
    return root.with_suffix(".json")


def _task_file(root: Path) -> Path:
    """Separate from the mark, which is never rewritten because holders lock it."""
    return root.with_suffix(".task")


def _task_of(root: Path) -> str:
    try:
        return _task_file(root).read_text(encoding="utf-8")
    except OSError:
        return ""


def _of_task(folder: Path, task: str) -> list[Path]:
    roots = (path.with_suffix("") for path in folder.glob("*.task") if _OURS.fullmatch(path.name))
    return [root for root in roots if _task_of(root) == task]


def _read(path: Path) -> _Mark | None:
    try:
        return _Mark.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def _size(folder: Path) -> int:
    """Bytes on disk; a file with several names counts once."""
    found: dict[tuple[int, int], int] = {}
    for entry in entries(folder):
        if not entry.is_dir(follow_symlinks=False):
            about = entry.stat(follow_symlinks=False)
            found[about.st_dev, about.st_ino] = about.st_blocks * _BLOCK
    return sum(found.values())
