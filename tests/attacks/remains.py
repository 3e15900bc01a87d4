"""The remains of an attack: files where none may stay after a call, and sandbox processes."""

import os
from collections.abc import Iterator
from pathlib import Path

import psutil

from engine.disk.leftovers import SET_ASIDE
from tests.system.leftovers import processes_of

__all__ = ["files_left", "sandboxed"]

_EMPTY_AFTER = (
    "calls/*/*",
    "trials/*",
    "making/*",
    "content/.incoming-*",
    "environments/*.build",
    "containers/*",
    "projects/*.new",
    f"*/{SET_ASIDE}*",
    f"*/*/{SET_ASIDE}*",
)
_KEPT = {".cases"}


def files_left(state: Path) -> set[str]:
    """Folders relative to the state directory, each with its content."""
    return {_told(path, state) for pattern in _EMPTY_AFTER for path in state.glob(pattern) if not _is_kept(path)}


def sandboxed(state: Path) -> set[int]:
    """Processes of this service that run as another user, or are a sandbox."""
    return {pid for pid, command in processes_of(state).items() if "bwrap" in command or _is_foreign(pid)}


def _is_kept(path: Path) -> bool:
    """A complete environment keeps its installation log."""
    return path.name in _KEPT or (path.suffix == ".build" and path.with_suffix(".json").exists())


def _is_foreign(pid: int) -> bool:
    try:
        return psutil.Process(pid).uids().real != os.getuid()
    except psutil.Error:
        return False


def _told(path: Path, state: Path) -> str:
    return f"{path.relative_to(state)} ({sum(1 for _ in _inside(path))})"


def _inside(path: Path) -> Iterator[str]:
    """Names only, without recursion: the folders may be deep."""
    for _, folders, files in os.walk(path):
        yield from folders
        yield from files
