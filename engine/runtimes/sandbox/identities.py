"""A user for each tool: a number of a range, taken by one tool of one service of the machine at a time.

The kernel counts some things by user, whatever namespaces a program is in: inotify instances, POSIX queues, pending signals. A
separate user has its own count of each.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from engine.runtimes.process.box import Box, LevelUnavailable
from engine.runtimes.sandbox.identity import GROUP, OURS, PAYLOAD, Identity
from toolagent.contracts.sandbox import Difference

DEFAULT_UIDS = range(60_706, 61_184)
"""Used by neither Debian (policy manual, 9.2.2) nor systemd, and within the 65,536 that a container may have."""

MACHINE = Path("/run/tool-agent/users")
"""Shared by the services of a machine: one file per user, locked while the user is taken; it names the last owner."""

COUNTED_TOGETHER = Difference(
    item="user",
    reason="The worker is an ordinary user, so all programs are that user to the kernel: one that takes all its inotify instances or "
    "POSIX queues leaves none for the others. A worker that is root gives each tool a user of its own.",
)
OF_THE_SERVICE = Difference(
    item="neighbours",
    reason=f"{MACHINE} cannot be written, so tools of another service of this machine may be the same users, and take what the kernel "
    "counts by user: make it writable, or give each service a range of its own in TOOL_AGENT_SANDBOX_UIDS.",
)
_MAP = Path("/proc/self/uid_map")
_MOST_SAID = 4096


@dataclass(frozen=True, slots=True)
class Taken:
    """A user taken for one tool. Call `release` once its run has ended and left no process."""

    identity: Identity
    release: Callable[[], None]


@dataclass(slots=True)
class _Held:
    identity: Identity
    lock: int
    runs: list[tuple[Path, ...]] = field(default_factory=list[tuple[Path, ...]])
    """The folders of each run."""


class Identities:
    """The users of a service that is root. All services of the machine share `folder`; `own` is the fallback. Raises OSError."""

    def __init__(self, uids: range = DEFAULT_UIDS, folder: Path = MACHINE, own: Path | None = None) -> None:
        self.differences: tuple[Difference, ...] = ()
        try:
            _require(folder)
        except OSError:
            if own is None:
                raise
            _require(own)
            folder, self.differences = own, (OF_THE_SERVICE,)
        self.uids, self._folder = uids, folder
        self._held: dict[Path, _Held] = {}
        self._turn = threading.Lock()

    def of(self, box: Box) -> Taken:
        """Take a user for a run, and hand it the folders that the run may write. Raises LevelUnavailable, OSError."""
        own = [mount.source for mount in box.mounts if mount.writable and not mount.is_machines]
        taken = self.take(*own or (Path("/nonexistent", box.name),))
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

    def take(self, *own: Path, had: int | None = None) -> Taken:
        """Take the user of these folders; if possible the same each time, while the first folder exists. Raises as above.

        Runs at the same time that share a folder share the user, if possible. `had` is the user of something that still runs.
        """
        with self._turn:
            held = next((self._held[path] for path in own if path in self._held), None) or self._free(own[0], had)
            held.runs.append(own)
            for path in own:
                self._held.setdefault(path, held)
        return Taken(held.identity, _once(lambda: self._release(held, own)))

    def _release(self, held: _Held, own: tuple[Path, ...]) -> None:
        with self._turn:
            held.runs.remove(own)
            for path in own:
                if self._held.get(path) is held and not any(path in run for run in held.runs):
                    del self._held[path]
            if not held.runs:
                os.close(held.lock)

    def _free(self, whose: Path, had: int | None) -> _Held:
        for is_last in (False, True):
            for uid in self._order(whose, had):
                lock = self._locked(uid)
                if lock is None:
                    continue
                before = _said(lock)
                # A tool that does not run may have left files under this number: it is taken only if no other is free.
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
                    _take_back(before, uid)
                # Not truncated first: file systems wait for the disk when such a file is closed.
                os.ftruncate(lock, os.pwrite(lock, os.fsencode(whose), 0))
        except OSError:
            os.close(lock)
            raise
        return _Held(Identity(uid, GROUP), lock)

    def _order(self, whose: Path, had: int | None) -> Iterator[int]:
        """The order of trying: the user it had, the folder's owner, then all from a position derived from the name."""
        if had is not None and had in self.uids:
            yield had
        with contextlib.suppress(OSError):
            if (owner := whose.lstat().st_uid) in self.uids:
                yield owner
        start = int.from_bytes(hashlib.sha256(os.fsencode(whose)).digest()[:8], "big")
        yield from (self.uids[(start + step) % len(self.uids)] for step in range(len(self.uids)))

    def _locked(self, uid: int) -> int | None:
        """A lock that the kernel releases if the worker dies; None if another holds it."""
        fd = os.open(self._folder / str(uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return fd


def differences_of(identities: Identities | None) -> tuple[Difference, ...]:
    return identities.differences if identities else (COUNTED_TOGETHER,)


def mapped(uids: range) -> range:
    """The part of `uids` that this user namespace has; a container may have fewer than its machine."""
    for line in _MAP.read_text("ascii").splitlines():
        first, _, count = map(int, line.split())
        inside = range(max(uids.start, first), min(uids.stop, first + count))
        if inside:
            return inside
    return range(0)


def _take_back(folder: Path, uid: int) -> None:
    """Hand the folder to a user without rights. Not to us: own_all never hands out our files that have a second name."""
    with contextlib.suppress(FileNotFoundError):
        if folder.lstat().st_uid == uid:
            nobody = PAYLOAD if mapped(range(PAYLOAD.uid, PAYLOAD.uid + 1)) else OURS
            nobody.own_all(folder)


def _require(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise OSError(errno.EROFS, "It cannot be written", str(folder))


def _said(lock: int) -> Path | None:
    text = os.pread(lock, _MOST_SAID, 0)
    return Path(os.fsdecode(text)) if text else None


def _once(step: Callable[[], None]) -> Callable[[], None]:
    steps = [step]
    return lambda: steps.pop()() if steps else None
