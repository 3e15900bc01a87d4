"""Files that this process has open although nobody can find them any more."""

from contextlib import suppress
from pathlib import Path

__all__ = ["is_deleted"]

_OPEN = Path("/proc/self/fd")
_DELETED = " (deleted)"


def is_deleted(file: Path) -> bool:
    """Whether a SQLite database or its journal was removed or replaced since it was opened; False where that cannot be said. Blocks."""
    names = {f"{file.parent.resolve() / file.name}{ending}{_DELETED}" for ending in ("", "-wal", "-shm")}
    if not _OPEN.is_dir():
        return False
    for descriptor in _OPEN.iterdir():
        with suppress(OSError):  # it has just been closed
            if str(descriptor.readlink()) in names:
                return True
    return False
