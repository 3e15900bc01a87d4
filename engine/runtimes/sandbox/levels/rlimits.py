"""The sandbox level `rlimits`, for machines without bubblewrap and Docker: resource limits, an ordinary user, and Landlock if available."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from engine.disk.leftovers import discard
from engine.runtimes.process.box import PYTHON, Box, Ending, LevelUnavailable, Prepared
from engine.runtimes.process.ownership import MARK, Owner
from engine.runtimes.process.processes import RUN_MARK
from engine.runtimes.sandbox.identities import Identities, Taken
from engine.runtimes.sandbox.levels import confine
from engine.runtimes.sandbox.levels.cgroups import Cgroup, Cgroups
from engine.runtimes.sandbox.levels.holding import Descriptors, bounds_of, memory_file, processors, readable
from engine.runtimes.sandbox.levels.machine_paths import opened
from engine.runtimes.sandbox.levels.places import Places, require_reachable
from engine.runtimes.sandbox.levels.seccomp import filter_fd
from engine.runtimes.sandbox.levels.system_files import SystemFiles
from engine.runtimes.sandbox.levels.watch import Watch
from toolagent.contracts.sandbox import Difference, SandboxLevel, SandboxLimits

_PROGRAM = Path(confine.__file__)

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_ALSO_READ = (
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system/cpu",
)
"""Files that interpreters read to learn the number of processors, the memory, and the address of `localhost`."""
_GONE_S = 5.0


class RLimits:
    """`identities` are the ordinary users of payloads if the worker is root; without them, payloads run as the worker's user.

    `folder` holds the runs' temporary files. `abi` is the highest version of Landlock to use.
    """

    level = SandboxLevel.RLIMITS
    has_own_network = False

    def __init__(self, folder: Path, owner: Owner, cgroups: Cgroups, identities: Identities | None, *, abi: int | None = None) -> None:
        self._folder, self._owner, self._cgroups, self._identities = folder, owner, cgroups, identities
        self._abi = confine.abi() if abi is None else min(abi, confine.abi())
        self._read = tuple(str(path) for path in _readable(folder / "etc"))
        self._has_filter = _has_filter()

    def differences(self) -> tuple[Difference, ...]:
        """What this level cannot enforce."""
        told = dict(_NEVER_HELD)
        if self._identities is None:
            told |= _AS_OURSELVES
        told |= {item: reason for since, (item, reason) in _LANDLOCK.items() if self._abi < since}
        if not self._has_filter:
            told["seccomp"] = "libseccomp cannot be used: system calls are not filtered, and networks other than TCP are open."
        told |= {f"cgroup.{name}": _WITHOUT_GROUP[name] for name in self._cgroups.missing}
        own = self._identities.differences if self._identities else ()
        return (*(Difference(item=item, reason=reason) for item, reason in told.items()), *own)

    async def prepare(self, argv: Sequence[str], box: Box) -> Prepared:
        try:
            return await asyncio.to_thread(self._prepare, argv, box)
        except OSError as error:
            raise LevelUnavailable(f"the run could not be prepared: {error}") from error

    async def sweep(self) -> tuple[str, ...]:
        return (*await self._cgroups.sweep(), *await asyncio.to_thread(self._swept))

    def _prepare(self, argv: Sequence[str], box: Box) -> "_Run":
        # The path contains the owner's mark, for the sweep.
        scratch = self._folder / self._owner.mark / box.name
        places = Places.of(box.mounts, scratch)
        taken = self._identities.of(box) if self._identities else None
        try:
            if taken:
                require_reachable(taken.identity, (PYTHON, self._folder, *(mount.source for mount in box.mounts)))
            for mount in box.mounts:
                if mount.is_machines:
                    os.close(opened(mount.source))
            return self._prepared(argv, box, places, scratch, taken)
        except (OSError, LevelUnavailable):
            discard(scratch)
            if taken:
                taken.release()
            raise

    def _prepared(self, argv: Sequence[str], box: Box, places: Places, scratch: Path, taken: Taken | None) -> "_Run":
        scratch.mkdir(parents=True)
        scratch.chmod(0o700)
        if taken:
            taken.identity.own(scratch)
        order = {
            "argv": [places.word(word) for word in argv],
            "folder": places.word(str(box.folder)),
            "environment": {"TMPDIR": str(scratch)} | {name: places.words(value) for name, value in box.environment.items()},
            "marks": [MARK, RUN_MARK],
            "user": [taken.identity.uid, taken.identity.gid] if taken else None,
            "bounds": self._bounds(box.limits, taken.identity.uid if taken else os.getuid()),
            "processors": processors(box.limits) if "cpu" in self._cgroups.missing else [],
            "landlock": self._landlock(places, box) if self._abi else None,
        }
        fds = _Descriptors(order, self._filter(box))
        try:
            group = self._cgroups.make(box.name, box.limits)
        except OSError:
            fds.close()
            raise
        return _Run(fds, group, box.limits, places.writable, scratch, taken)

    def _filter(self, box: Box) -> int | None:
        if not self._has_filter:
            return None
        return filter_fd(is_apart=False, named_sockets=bool(box.ports), is_pinned="cpu" in self._cgroups.missing)

    def _landlock(self, places: Places, box: Box) -> Mapping[str, object]:
        return {
            "abi": self._abi,
            "read": [*self._read, *map(str, places.readable)],
            "write": [str(path) for path in places.writable],
            "devices": [device for device in _DEVICES if Path(device).exists()],
            "ports": list(box.ports),
        }

    def _bounds(self, limits: SandboxLimits, uid: int) -> list[tuple[int, int]]:
        # The kernel counts all processes of the user, so the existing ones are added.
        is_counted = "pids" in self._cgroups.missing and limits.processes is not None
        return bounds_of(limits, self._cgroups.missing, (limits.processes or 0) + _running(uid) if is_counted else None)

    def _swept(self) -> tuple[str, ...]:
        gone: list[str] = []
        for folder in self._folder.iterdir() if self._folder.is_dir() else ():
            owner = Owner.read(folder.name)
            if owner is not None and not owner.is_alive():
                gone += [run.name for run in folder.iterdir()]
                discard(folder)
        return tuple(sorted(gone))


class _Descriptors(Descriptors):
    """The descriptors of `confine.py`. The run starts when a byte is written to `go`, not when that is closed."""

    def __init__(self, order: Mapping[str, object], rules: int | None) -> None:
        order_fd = memory_file("order", json.dumps(order).encode())
        go_read, self.go = os.pipe()
        self.alive, alive_write = os.pipe()
        self.handed_over = (order_fd, go_read, alive_write, *([rules] if rules is not None else []))
        super().__init__(*self.handed_over, self.go, self.alive)


class _Run:
    """A run that waits before its first instruction until its limits are set."""

    environment: Mapping[str, str] = {}
    ends_with_us = True

    def __init__(
        self, fds: _Descriptors, group: Cgroup, limits: SandboxLimits, watched: Sequence[Path], scratch: Path, taken: Taken | None
    ) -> None:
        self._fds, self._group, self._scratch, self._taken = fds, group, scratch, taken
        self.pass_fds: Sequence[int] = fds.handed_over
        self.argv: Sequence[str] = [PYTHON, "-I", "-S", str(_PROGRAM), *map(str, self.pass_fds)]
        self._watch = Watch(watched, limits, memory="memory" not in group.folders, kill=self._kill)
        self._pid: int | None = None

    async def begin(self, pid: int) -> None:
        self._pid = pid
        self._fds.close(*self.pass_fds)
        self._group.add(pid)
        self._watch.begin(lambda: pid)
        with contextlib.suppress(BrokenPipeError):  # it has ended; the reason is on stderr
            os.write(self._fds.go, b"\n")
        self._fds.close(self._fds.go)

    def terminate(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            for keeper in self._keeper():
                for process in keeper.children(recursive=True):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        process.terminate()

    async def end(self) -> Ending:
        self._fds.close(*self.pass_fds, self._fds.go)
        await self._watch.end()
        counted = self._group.ending()
        try:
            await self._keeper_gone()
        finally:
            self._fds.close()
            await self._group.remove()
            await asyncio.to_thread(discard, self._scratch)
            if self._taken:
                self._taken.release()
        return self._watch.ending(counted)

    def _kill(self) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            for keeper in self._keeper():
                keeper.send_signal(signal.SIGUSR1)

    def _keeper(self) -> Sequence[psutil.Process]:
        return psutil.Process(self._pid).children() if self._pid is not None else ()

    async def _keeper_gone(self) -> None:
        """Wait for the keeper, which holds the last write end of the pipe `alive` and ends after everything the program started."""
        try:
            async with asyncio.timeout(_GONE_S):
                await readable(self._fds.alive)
        except TimeoutError:
            raise OSError(f"what a program started had not ended {_GONE_S:g} s after it") from None


def _readable(own: Path) -> list[Path]:
    """Programs, libraries and certificates of the machine, and a few other files. Most of its /etc stays unreadable."""
    system = [mount.source for mount in SystemFiles.write(own, (os.getuid(),)).mounts]
    return [path for path in (*system, *map(Path, _ALSO_READ)) if path.exists() and not path.is_relative_to(own)]


def _has_filter() -> bool:
    try:
        os.close(filter_fd(is_apart=False))
    except OSError:
        return False
    return True


def _running(uid: int) -> int:
    """The number of this user's threads, which the kernel counts as processes."""
    count = 0
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            count += process.num_threads() if process.uids().real == uid else 0
    return count


_NEVER_HELD = {
    "mounts": "Files are seen where they are on the machine: names in arguments and variables are changed, those in files are not.",
    "tmp": "There is no /tmp of its own, only the folder that $TMPDIR names, on the machine's disk.",
    "network": "There is no loopback of its own: what the program listens on, other users of the machine reach too.",
    "file names": "Whether a file exists, its size and its owner can be asked of every path.",
    "processes": "The machine's processes can be counted by their numbers.",
}
_AS_OURSELVES = {
    "user": "Programs are the worker's user: they can change the mode and times of that user's files, though not read or write them.",
    "neighbours": "One program can take all inotify instances that the user may have, and leave none for the others.",
    "unix sockets": "A program that has a way to the network reaches every unix socket of that user whose path it knows.",
}
_LANDLOCK = {
    1: ("landlock", "This kernel has no Landlock: every file of the user can be read and written."),
    3: ("landlock.truncate", "This kernel's Landlock is older than version 3: files of the user can be emptied."),
    4: ("landlock.network", "This kernel's Landlock is older than version 4: every host and port can be reached by TCP."),
    6: (
        "landlock.scope",
        "This kernel's Landlock is older than version 6: the user's processes can be sent signals, and be reached by abstract sockets.",
    ),
}
_WITHOUT_GROUP = {
    "memory": "Memory is bounded for each process, and looked at every half second for all together.",
    "pids": "Processes are counted over all that the user has.",
    "cpu": "Only whole processors can be given: part of one is one.",
}
