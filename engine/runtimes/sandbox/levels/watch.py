"""Ends runs that exceed their disk or memory limit, where the kernel does not enforce it."""

import asyncio
import contextlib
import functools
import math
import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import structlog

from engine.runtimes.process.box import MOST_LEVELS, Ending
from toolagent.contracts.sandbox import SandboxLimits

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_LOOK_S = 0.5
_SHARE = 20
"""Looking takes at most this part (1/20) of a processor's time."""
_LEAST = 4096
"""Bytes counted for each file at least, as empty files take space too."""


class Watch:
    """Checks the folders that a run may write and, with `memory`, the memory of its processes. `kill` ends the run."""

    def __init__(self, folders: Sequence[Path], limits: SandboxLimits, *, memory: bool, kill: Callable[[], None]) -> None:
        self._folders, self._limits, self._memory, self._kill = folders, limits, memory, kill
        self._task: asyncio.Task[None] | None = None
        self._pid: int | None = None
        self._ended = asyncio.Event()
        self.out_of_memory = self.disk_full = self.disk_hidden = False

    def begin(self, first: Callable[[], int | None]) -> None:
        """Start looking. `first`, called in a thread, returns the root process of the run, or None while it is unknown."""
        if self._folders or self._memory:
            self._task = asyncio.create_task(self._look(first), name="watch")

    async def end(self) -> None:
        """Stop after a last look at the ended run."""
        self._ended.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    def ending(self, counted: Ending) -> Ending:
        """The counts of control groups, combined with what was seen here."""
        return replace(
            counted,
            out_of_memory=counted.out_of_memory or self.out_of_memory,
            disk_full=self.disk_full,
            disk_hidden=self.disk_hidden,
        )

    async def _look(self, first: Callable[[], int | None]) -> None:
        try:
            # A new run holds nothing yet, and going through all processes would take longer than many runs.
            is_over, took_s = await asyncio.to_thread(self._looked, None)
            while not is_over and not await self._ends_within(max(_LOOK_S, took_s * _SHARE)):
                is_over, took_s = await asyncio.to_thread(self._looked, first)
            if not is_over:
                await asyncio.to_thread(self._is_over, [])
        except Exception as error:  # noqa: BLE001 - after any failure the limits would be unchecked
            _log.error("watch_failed", folders=[str(folder) for folder in self._folders], reason=repr(error))
            is_over = True
        # The number of an ended process may be reused.
        if is_over and not self._ended.is_set():
            self._kill()

    async def _ends_within(self, wait_s: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), wait_s)
        return self._ended.is_set()

    def _looked(self, first: Callable[[], int | None] | None) -> tuple[bool, float]:
        """Whether a limit is exceeded, and the processor time of the look in seconds."""
        if self._pid is None and first is not None:
            self._pid = first()
        began = time.thread_time()
        return self._is_over(_tree(self._pid) if self._pid is not None else []), time.thread_time() - began

    def _is_over(self, pids: Sequence[int]) -> bool:
        disk, memory = self._limits.disk_bytes, self._limits.memory_bytes
        on_disk, in_memory = _nameless(pids)
        size = sum(map(_size, self._folders)) if disk is not None else 0
        self.disk_hidden = math.isinf(size)
        self.disk_full = disk is not None and bool(self._folders) and size + on_disk > disk
        self.out_of_memory = self._memory and memory is not None and _resident(pids) + in_memory > memory
        return self.disk_full or self.out_of_memory


def _size(folder: Path) -> float:
    """Bytes on disk of all files; links are not followed. Infinite if some cannot be counted."""
    total, hidden = 0, False

    def unseen(error: OSError) -> None:
        nonlocal hidden
        hidden = hidden or not isinstance(error, FileNotFoundError)

    top = len(folder.parts)
    for inside, folders, files in os.walk(folder, onerror=unseen):
        if hidden or len(Path(inside).parts) - top > MOST_LEVELS:
            return math.inf
        total += _LEAST * len(folders)
        for name in files:
            try:
                total += max(Path(inside, name).lstat().st_blocks * 512, _LEAST)
            except OSError as error:
                unseen(error)
    return math.inf if hidden else total


def _nameless(pids: Sequence[int]) -> tuple[int, int]:
    """Bytes of open files without a name: on disk (deleted files) and in memory (memfd)."""
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        # An ended process has no open files.
        with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    status = entry.stat()
                    if status.st_nlink == 0 and stat.S_ISREG(status.st_mode):
                        found[status.st_dev, status.st_ino] = status.st_blocks * 512
    in_memory = sum(size for (device, _), size in found.items() if device == _memory_device())
    return sum(found.values()) - in_memory, in_memory


@functools.cache
def _memory_device() -> int:
    """The device of files in memory."""
    fd = os.memfd_create("device")
    try:
        return os.fstat(fd).st_dev
    finally:
        os.close(fd)


def _tree(pid: int) -> list[int]:
    """The process and its descendants."""
    if not _tells_children():
        with contextlib.suppress(psutil.NoSuchProcess):
            return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
        return []
    found = [pid]
    for one in found:  # grows during the loop
        with contextlib.suppress(OSError), os.scandir(f"/proc/{one}/task") as threads:
            for thread in threads:
                with contextlib.suppress(OSError):
                    found += map(int, Path(thread.path, "children").read_bytes().split())
    return list(dict.fromkeys(found))  # a process whose parent ended meanwhile may appear twice


@functools.cache
def _tells_children() -> bool:
    """Whether the kernel lists a thread's children. Otherwise all processes of the machine are searched."""
    return Path(f"/proc/self/task/{threading.get_native_id()}/children").exists()


def _resident(pids: Sequence[int]) -> int:
    total = 0
    for pid in pids[1:]:
        with contextlib.suppress(psutil.Error):
            total += psutil.Process(pid).memory_info().rss
    return total
