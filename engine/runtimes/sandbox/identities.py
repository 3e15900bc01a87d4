"""A user of its own for every tool: numbers of a range, each taken by one tool of one service of the machine at a time.

The kernel counts some things by user, whatever namespaces a program is in: inotify instances, POSIX queues, pending signals. Who is another
user has all of them.
"""

import contextlib
import fcntl
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.runtimes.sandbox.box import Box, LevelUnavailable
from engine.runtimes.sandbox.identity import OURS, Identity
from toolagent.contracts.sandbox import Difference

__all__ = ["COUNTED_TOGETHER", "DEFAULT_UIDS", "MACHINE", "Identities", "Taken", "mapped"]

DEFAULT_UIDS = range(60_706, 61_184)
"""Given to nobody by Debian (policy manual, 9.2.2) nor by systemd, and within the 65,536 that a container may have."""

MACHINE = Path("/run/tool-agent/users")
"""Where the services of a machine meet: one file for each user, locked while it is somebody's, which says whose it was last."""

COUNTED_TOGETHER = Difference(
    item="user",
    reason="The worker is an ordinary user, so all programs are that user to the kernel: one that takes all its inotify instances or "
    "POSIX queues leaves none for the others. A worker that is root gives each tool a user of its own.",
)
_MAP = Path("/proc/self/uid_map")
_MOST_SAID = 4096


@dataclass(frozen=True, slots=True)
class Taken:
    """A user that is one tool's. `release` once its run has ended, and left no process."""

    identity: Identity
    release: Callable[[], None]


@dataclass(slots=True)
class _Held:
    identity: Identity
    lock: int
    runs: int = 0


class Identities:
    """Of a service that is root. `folder` is shared by all services of the machine. Raises OSError where there is no such folder."""

    def __init__(self, uids: range = DEFAULT_UIDS, folder: Path = MACHINE) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.uids, self._folder = uids, folder
        self._held: dict[Path, _Held] = {}
        self._turn = threading.Lock()

    def of(self, box: Box) -> Taken:
        """A user for a run, who gets what it may write. Runs that write to one folder are one user. Raises LevelUnavailable, OSError."""
        own = [mount.source for mount in box.mounts if mount.writable and not mount.is_machines]
        taken = self.take(own[0] if own else Path("/nonexistent", box.name))
        try:
            for path in own:
                taken.identity.own_all(path)
            for mount in box.mounts:
                if mount.is_handed_over:
                    taken.identity.own_all(mount.source)
        except OSError:
            taken.release()
            raise
        return taken

    def take(self, whose: Path, had: int | None = None) -> Taken:
        """The user of whoever has this folder; the same each time as long as the folder is there, if that can be. Raises as above.

        `had` is the one that something that still runs was given.
        """
        with self._turn:
            held = self._held.get(whose) or self._free(whose, had)
            self._held[whose] = held
            held.runs += 1
        return Taken(held.identity, _once(lambda: self._release(whose)))

    def _release(self, whose: Path) -> None:
        with self._turn:
            held = self._held[whose]
            held.runs -= 1
            if not held.runs:
                del self._held[whose]
                os.close(held.lock)

    def _free(self, whose: Path, had: int | None) -> _Held:
        for is_last in (False, True):
            for uid in self._order(whose, had):
                lock = self._locked(uid)
                if lock is None:
                    continue
                before = _said(lock)
                # Of another one that is not running, something may be left under this number: it is taken when no other is free.
                if before is None or before == whose or not before.exists() or is_last:
                    return self._given(uid, lock, whose, before)
                os.close(lock)
        raise LevelUnavailable(
            f"all {len(self.uids)} users of this machine's sandboxes ({self.uids[0]}-{self.uids[-1]}) are taken by tools that run: "
            "name more of them in TOOL_AGENT_SANDBOX_UIDS"
        )

    def _given(self, uid: int, lock: int, whose: Path, before: Path | None) -> _Held:
        try:
            if before != whose:
                if before is not None:
                    with contextlib.suppress(FileNotFoundError):
                        OURS.own_all(before)
                # Not emptied first: file systems wait for the disk when such a file is closed.
                os.ftruncate(lock, os.pwrite(lock, os.fsencode(whose), 0))
        except OSError:
            os.close(lock)
            raise
        return _Held(Identity(uid, uid), lock)

    def _order(self, whose: Path, had: int | None) -> Iterator[int]:
        """First the one that it had, or whose the folder is, then from a place that its name says."""
        if had is not None and had in self.uids:
            yield had
        with contextlib.suppress(OSError):
            if (owner := whose.lstat().st_uid) in self.uids:
                yield owner
        start = int.from_bytes(hashlib.sha256(os.fsencode(whose)).digest()[:8], "big")
        yield from (self.uids[(start + step) % len(self.uids)] for step in range(len(self.uids)))

    def _locked(self, uid: int) -> int | None:
        """The kernel lets go of it when we die."""
        fd = os.open(self._folder / str(uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return fd


def mapped(uids: range) -> range:
    """Those of them that this user namespace has; a container need not have all that its machine has."""
    for line in _MAP.read_text("ascii").splitlines():
        first, _, count = map(int, line.split())
        inside = range(max(uids.start, first), min(uids.stop, first + count))
        if inside:
            return inside
    return range(0)


def _said(lock: int) -> Path | None:
    text = os.pread(lock, _MOST_SAID, 0)
    return Path(os.fsdecode(text)) if text else None


def _once(step: Callable[[], None]) -> Callable[[], None]:
    steps = [step]
    return lambda: steps.pop()() if steps else None
