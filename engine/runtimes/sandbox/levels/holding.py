"""Shared by the levels `bubblewrap` and `rlimits` to prepare a run: limits, descriptors, files in memory."""

import asyncio
import math
import os
import random
import resource
from collections.abc import Collection

from toolagent.contracts.sandbox import SandboxLimits


class Descriptors:
    """The open descriptors of one run."""

    def __init__(self, *fds: int) -> None:
        self._open = {*fds}

    def keep(self, fd: int) -> int:
        self._open.add(fd)
        return fd

    def close(self, *fds: int) -> None:
        """Close these, or all if none are named; each only once, as a closed number may be reused."""
        for fd in self._open.intersection(fds or self._open):
            self._open.discard(fd)
            os.close(fd)


def bounds_of(limits: SandboxLimits, missing: Collection[str], processes: int | None) -> list[tuple[int, int]]:
    """Resource limits for each process, with substitutes for `missing` control groups. `processes` counts those of the user."""
    asked = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, limits.open_files), (resource.RLIMIT_FSIZE, limits.file_bytes)]
    if "memory" in missing:
        asked.append((resource.RLIMIT_DATA, limits.memory_bytes))  # per process; the watch checks their sum
    if "pids" in missing:
        asked.append((resource.RLIMIT_NPROC, processes))
    # No limit may exceed the worker's own.
    return [(which, _at_most(bound, resource.getrlimit(which)[1])) for which, bound in asked if bound is not None]


def _at_most(bound: int, hard: int) -> int:
    return bound if hard == resource.RLIM_INFINITY else min(bound, hard)


def memory_file(name: str, content: bytes) -> int:
    """A descriptor of a file in memory with this content. Raises OSError."""
    fd = os.memfd_create(name)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


async def readable(fd: int) -> None:
    """Wait until there is data, or the end."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(fd, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(fd)


def processors(limits: SandboxLimits) -> list[int]:
    """The processors for a run, where the kernel cannot limit processor time.

    As many as the limit says, rounded up; chosen at random, so that runs spread.
    """
    ours = sorted(os.sched_getaffinity(0))
    return sorted(random.sample(ours, min(len(ours), math.ceil(limits.cpus or 1))))
