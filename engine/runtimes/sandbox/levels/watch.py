"""Ends a run that takes more disk, or memory, than it may, where the kernel does not see to it."""

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
"""Looking may take this part of a processor's time at most."""
_LEAST = 4096
"""An empty file takes room too."""


class Watch:
    """Looks at the folders that a run may write and, with `memory`, at the memory of its processes. `kill` ends the run."""

    def __init__(self, folders: Sequence[Path], limits: SandboxLimits, *, memory: bool, kill: Callable[[], None]) -> None:
        self._folders, self._limits, self._memory, self._kill = folders, limits, memory, kill
        self._task: asyncio.Task[None] | None = None
        self._pid: int | None = None
        self._ended = asyncio.Event()
        self.out_of_memory = self.disk_full = self.disk_hidden = False

    def begin(self, first: Callable[[], int | None]) -> None:
        """`first`, asked in a thread, is the process that all others of the run come from; None while it is not known."""
        if self._folders or self._memory:
            self._task = asyncio.create_task(self._look(first), name="watch")

    async def end(self) -> None:
        """The run has ended: what it did since it was looked at counts too."""
        self._ended.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    def ending(self, counted: Ending) -> Ending:
        """What control groups tell of an end, with what was seen here."""
        return replace(
            counted,
            out_of_memory=counted.out_of_memory or self.out_of_memory,
            disk_full=self.disk_full,
            disk_hidden=self.disk_hidden,
        )

    async def _look(self, first: Callable[[], int | None]) -> None:
        try:
            # What has just begun holds nothing yet, and going through all processes would take longer than many a run.
            is_over, took_s = await asyncio.to_thread(self._looked, None)
            while not is_over and not await self._ends_within(max(_LOOK_S, took_s * _SHARE)):
                is_over, took_s = await asyncio.to_thread(self._looked, first)
            if not is_over:
                await asyncio.to_thread(self._is_over, [])
        except Exception as error:  # noqa: BLE001 - whatever it was, from now on nobody would see to the limits
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
        """Whether it is over, and how many seconds of a processor that took to find out."""
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
    """Bytes on disk of all files, not of what links lead to. What hides from being counted is without bounds."""
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
    """Bytes of files that have no name and are open: on disk because they were deleted, in memory because they never had one."""
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
    """Where files live that are made in memory."""
    fd = os.memfd_create("device")
    try:
        return os.fstat(fd).st_dev
    finally:
        os.close(fd)


def _tree(pid: int) -> list[int]:
    """It, and all that come from it."""
    if not _tells_children():
        with contextlib.suppress(psutil.NoSuchProcess):
            return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
        return []
    found = [pid]
    for one in found:  # which grows meanwhile
        with contextlib.suppress(OSError), os.scandir(f"/proc/{one}/task") as threads:
            for thread in threads:
                with contextlib.suppress(OSError):
                    found += map(int, Path(thread.path, "children").read_bytes().split())
    return list(dict.fromkeys(found))  # one whose parent ended meanwhile may be found with two


@functools.cache
def _tells_children() -> bool:
    """Whether the kernel tells whose children are whose. Else all processes of the machine have to be looked through."""
    return Path(f"/proc/self/task/{threading.get_native_id()}/children").exists()


def _resident(pids: Sequence[int]) -> int:
    total = 0
    for pid in pids[1:]:
        with contextlib.suppress(psutil.Error):
            total += psutil.Process(pid).memory_info().rss
    return total
