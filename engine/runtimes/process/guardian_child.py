"""Ends process groups once its parent process is gone; runs as `python -I -S guardian_child.py [NAME=MARK]`.

Standard library only. Reads `add <pgid>` and `remove <pgid>` from stdin. The end of stdin means that the parent has ended.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path

_ROUNDS = 20


def main() -> None:
    for quiet in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(quiet, signal.SIG_IGN)
    mark = sys.argv[1].encode() if len(sys.argv) > 1 else b""
    groups = _watch()
    for pgid, started in groups.items():
        # A leader with another start time is another process that got the number later.
        if _started(pgid) in (started, None):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pgid, signal.SIGKILL)
    if mark:
        _kill_marked(mark)


def _watch() -> dict[int, str | None]:
    groups: dict[int, str | None] = {}
    for line in sys.stdin:
        verb, _, number = line.strip().partition(" ")
        if not number.isdecimal():
            continue
        if verb == "add":
            groups[int(number)] = _started(int(number))
        else:
            groups.pop(int(number), None)
    return groups


def _started(pid: int) -> str | None:
    """The start time of a process in the kernel's ticks; None if it is gone (or there is no /proc)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def _kill_marked(mark: bytes) -> None:
    """End processes with the mark that left their group; repeat until none is found, as they may fork meanwhile."""
    for _ in range(_ROUNDS):
        found = [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if int(entry.name) != os.getpid() and _carries(entry, mark)]
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return


def _carries(entry: Path, mark: bytes) -> bool:
    try:
        return mark in (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


if __name__ == "__main__":
    main()
