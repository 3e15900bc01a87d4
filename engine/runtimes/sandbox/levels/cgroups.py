"""Limits of memory, processors and processes by control groups, version 2 or 1, where they are writable."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from engine.runtimes.process.box import Ending
from engine.runtimes.process.ownership import Owner
from toolagent.contracts.sandbox import SandboxLimits

_ROOT = Path("/sys/fs/cgroup")
_OURS = "tool-agent"
_LEAF = "tool-agent-worker"
_PERIOD_US = 100_000
_CONTROLLERS = ("memory", "pids", "cpu")
_GONE_S = 5.0
_LOOK_S = 0.0005
_LOOK_AT_MOST_S = 0.02


@dataclass(frozen=True, slots=True)
class Cgroup:
    """The group of one run: one folder in version 2, one for each controller in version 1."""

    folders: Mapping[str, Path]
    is_unified: bool

    @property
    def doors(self) -> tuple[str, ...]:
        """Files by which a single-threaded process moves itself (by writing 0) without delay; version 2 has none.

        Moving another process, or oneself in version 2, waits for every processor: some milliseconds, longer if they are busy.
        """
        return () if self.is_unified else tuple(str(folder / "tasks") for folder in self.folders.values())

    def add(self, pid: int) -> None:
        """Put a process into the group, with everything it starts from now on. Raises OSError."""
        for folder in set(self.folders.values()):
            (folder / "cgroup.procs").write_text(str(pid))

    def ending(self) -> Ending:
        """The kernel's counts so far."""
        memory = "memory.events" if self.is_unified else "memory.oom_control"
        return Ending(
            out_of_memory=_count("memory", self.folders, memory, "oom_kill") > 0,
            processes_refused=_count("pids", self.folders, "pids.events", "max") > 0,
        )

    async def remove(self) -> None:
        """End the processes in the group and remove it. A missing group is no error."""
        for folder in set(self.folders.values()):
            await _remove(folder)


class Cgroups:
    """Makes groups under our own. Each name contains the owner's mark, for the sweep."""

    def __init__(self, owner: Owner, root: Path = _ROOT) -> None:
        self._owner, self._is_unified = owner, (root / "cgroup.controllers").is_file()
        self._parents = _unified(root) if self._is_unified else _separate(root)

    @property
    def missing(self) -> tuple[str, ...]:
        """The controllers that we may not use on this machine."""
        return tuple(name for name in _CONTROLLERS if name not in self._parents)

    def make(self, name: str, limits: SandboxLimits) -> Cgroup:
        """Make an empty group with these limits. Raises OSError."""
        folders = {controller: parent / f"{self._owner.mark}.{name}" for controller, parent in self._parents.items()}
        try:
            for folder in folders.values():
                folder.mkdir(exist_ok=True)
            for controller, settings in self._settings(limits).items():
                for file, value in settings.items():
                    if controller in folders:
                        # Without swap accounting the file is missing, and no swap can be used.
                        with contextlib.suppress(FileNotFoundError):
                            (folders[controller] / file).write_text(value)
        except OSError:
            for folder in folders.values():
                with contextlib.suppress(OSError):
                    folder.rmdir()
            raise
        return Cgroup(folders, self._is_unified)

    async def sweep(self) -> tuple[str, ...]:
        """Remove the groups of dead workers of this state directory, and end their processes. Returns the names.

        Of other state directories, which may be gone, only empty groups are removed.
        """
        gone: set[str] = set()
        for parent in set(self._parents.values()):
            for folder in parent.iterdir():
                owner = Owner.read(folder.name.rpartition(".")[0])
                if owner is None or owner.is_alive():
                    continue
                if owner.state == self._owner.state:
                    await _remove(folder)
                    gone.add(folder.name)
                else:
                    with contextlib.suppress(OSError):  # not empty: its own service ends the processes
                        folder.rmdir()
        return tuple(sorted(gone))

    def _settings(self, limits: SandboxLimits) -> dict[str, dict[str, str]]:
        quota = str(int((limits.cpus or 1) * _PERIOD_US))
        memory, processes = str(limits.memory_bytes), str(limits.processes)
        if self._is_unified:
            return {
                "memory": {"memory.max": memory, "memory.swap.max": "0", "memory.oom.group": "1"},
                "pids": {"pids.max": processes},
                "cpu": {"cpu.max": f"{quota} {_PERIOD_US}"},
            }
        return {
            "memory": {"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory},
            "pids": {"pids.max": processes},
            "cpu": {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": quota},
        }


def _unified(root: Path) -> dict[str, Path]:
    """Version 2: one tree. A group with processes cannot pass its controllers on, so the worker moves into a sibling group."""
    own = _own(root, "")
    for base in (own.parent if own.name == _LEAF else own, root):
        with contextlib.suppress(OSError):
            if found := _below(base):
                return found
    return {}


def _below(base: Path) -> dict[str, Path]:
    """Raises OSError if we may not write there."""
    parent = base / _OURS
    parent.mkdir(exist_ok=True)
    if not _hand_down(base) and _step_aside(base):
        _hand_down(base)
    return dict.fromkeys(_hand_down(parent), parent)


def _hand_down(folder: Path) -> tuple[str, ...]:
    """Enable controllers for the groups in this folder; returns those that are enabled."""
    control = folder / "cgroup.subtree_control"
    for name in _CONTROLLERS:
        with contextlib.suppress(OSError):
            if name not in control.read_text().split():
                control.write_text(f"+{name}")
    there = control.read_text().split()
    return tuple(name for name in _CONTROLLERS if name in there)


def _step_aside(base: Path) -> bool:
    """Move the worker and its children into their own group. Returns False, without a move, if other processes are in this one."""
    ours = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    if not ours.issuperset(_pids(base)):
        return False
    leaf = base / _LEAF
    leaf.mkdir(exist_ok=True)
    for pid in _pids(base):
        with contextlib.suppress(ProcessLookupError):
            (leaf / "cgroup.procs").write_text(str(pid))
    return True


def _separate(root: Path) -> dict[str, Path]:
    """Version 1: one tree per controller; our group is below the current one, whose limits stay in force."""
    found: dict[str, Path] = {}
    for name in _CONTROLLERS:
        for base in (_own(root / name, name), root / name):
            parent = base / _OURS
            with contextlib.suppress(OSError):
                parent.mkdir(exist_ok=True)
                if os.access(parent, os.W_OK):
                    found[name] = parent
                    break
    return found


def _own(root: Path, controller: str) -> Path:
    """The group of this process."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(",") or (not controller and not controllers):
            return root / path.lstrip("/")
    return root


def _count(controller: str, folders: Mapping[str, Path], file: str, name: str) -> int:
    with contextlib.suppress(KeyError, OSError, ValueError):
        for line in (folders[controller] / file).read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return 0


async def _remove(folder: Path) -> None:
    """Raises OSError if a process in it cannot be ended."""
    pause_s = _LOOK_S
    try:
        async with asyncio.timeout(_GONE_S):
            while not _is_gone(folder):
                await asyncio.sleep(pause_s)  # the kernel does not notify
                pause_s = min(2 * pause_s, _LOOK_AT_MOST_S)
    except TimeoutError:
        raise OSError(f"the control group {folder} could not be removed within {_GONE_S:g} s") from None


def _is_gone(folder: Path) -> bool:
    """Remove the group, or kill its processes, which need a moment to leave. Returns whether it is gone."""
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        _kill(folder)
        return False
    return True


def _kill(folder: Path) -> None:
    try:
        # Version 2, Linux 5.14: kills all at once, so that none can fork meanwhile.
        with (folder / "cgroup.kill").open("r+") as file:
            file.write("1")
    except OSError:
        for pid in _pids(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _pids(folder: Path) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(line) for line in (folder / "cgroup.procs").read_text().split()]
    return []
