"""What both of our own levels share to set up a run before its first instruction: limits, descriptors, files in memory."""

import asyncio
import math
import os
import random
import resource
from collections.abc import Collection

from toolagent.contracts.sandbox import SandboxLimits


class Descriptors:
    """Those of one run that are open here."""

    def __init__(self, *fds: int) -> None:
        self._open = {*fds}

    def keep(self, fd: int) -> int:
        self._open.add(fd)
        return fd

    def close(self, *fds: int) -> None:
        """Each once: a closed number may be reused by now. Without any named, all."""
        for fd in self._open.intersection(fds or self._open):
            self._open.discard(fd)
            os.close(fd)


def bounds_of(limits: SandboxLimits, missing: Collection[str], processes: int | None) -> list[tuple[int, int]]:
    """What the kernel bounds for each process, and where control groups are `missing` in place of them. `processes` are of the user."""
    asked = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, limits.open_files), (resource.RLIMIT_FSIZE, limits.file_bytes)]
    if "memory" in missing:
        asked.append((resource.RLIMIT_DATA, limits.memory_bytes))  # of each process; the watch sees to their sum
    if "pids" in missing:
        asked.append((resource.RLIMIT_NPROC, processes))
    # No limit of ours may be above the one we are under ourselves.
    return [(which, _at_most(bound, resource.getrlimit(which)[1])) for which, bound in asked if bound is not None]


def _at_most(bound: int, hard: int) -> int:
    return bound if hard == resource.RLIM_INFINITY else min(bound, hard)


def memory_file(name: str, content: bytes) -> int:
    """A descriptor to read it from. Raises OSError."""
    fd = os.memfd_create(name)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


async def readable(fd: int) -> None:
    """Wait until there is something to read, or the end."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(fd, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(fd)


def processors(limits: SandboxLimits) -> list[int]:
    """Those that a run may use, where the kernel does not let us ration their time.

    As many of ours as are asked for, part of one counted as one; any of them, so that runs spread.
    """
    ours = sorted(os.sched_getaffinity(0))
    return sorted(random.sample(ours, min(len(ours), math.ceil(limits.cpus or 1))))
