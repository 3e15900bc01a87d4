"""Checks of SQLite files from outside: whether they are damaged, and whether they were removed."""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

_MOST = 20
_START_S = 2.0
_STEPS = 10_000
_OPEN = Path("/proc/self/fd")
_DELETED = " (deleted)"


def damages_of(file: Path) -> Sequence[str]:
    """The findings of SQLite's full integrity check. Only reads, so a service may be running. Blocks."""
    try:
        with closing(_reading(file)) as connection:
            said = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({_MOST})")]
    except sqlite3.Error as error:
        return [f"malformed: {error}" if _is_malformed(error) else str(error)]
    return [] if said == ["ok"] else [f"malformed: {line}" for line in said]


def damage_at_start(file: Path) -> str | None:
    """The first damage found within two seconds: a large file is not read to its end. Blocks."""
    if not file.is_file() or file.stat().st_size == 0:
        return None
    until = time.monotonic() + _START_S
    try:
        with closing(_reading(file)) as connection:
            connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
            said = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return f"malformed: {error}" if _is_malformed(error) else None
    return None if said == "ok" else f"malformed: {said}"


def is_deleted(file: Path) -> bool:
    """Whether the database or its journal was removed or replaced since it was opened; False if unknown. Blocks."""
    names = {f"{file.parent.resolve() / file.name}{ending}{_DELETED}" for ending in ("", "-wal", "-shm")}
    if not _OPEN.is_dir():
        return False
    for descriptor in _OPEN.iterdir():
        with suppress(OSError):  # it has just been closed
            if str(descriptor.readlink()) in names:
                return True
    return False


def _reading(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True, timeout=5)


def _is_malformed(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
