"""Programs of tests, which end with the test run, however it ends."""

import asyncio
import atexit
import os
import subprocess
from collections.abc import Sequence
from functools import cache
from typing import Any

from engine.runtimes.process.guardian import Guardian

__all__ = ["Program", "end_with_us", "start_program"]

_watched: set[int] = set()


class Program(subprocess.Popen[bytes]):
    """A program in its own session. A guardian kills it when this process has died; a service then ends its own children."""

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        _guardian()  # before there is something to guard
        super().__init__(command, start_new_session=True, **options)
        end_with_us(self.pid)


async def start_program(*command: str, **options: Any) -> asyncio.subprocess.Process:
    """The same for programs that the event loop waits for."""
    _guardian()
    process = await asyncio.create_subprocess_exec(*command, start_new_session=True, **options)
    end_with_us(process.pid)
    return process


def end_with_us(group: int) -> None:
    """Have this process group killed when this process has died."""
    # The number of one that has ended may become a stranger's.
    for ended in [other for other in _watched if not _is_there(other)]:
        _watched.remove(ended)
        _guardian().release(ended)
    _watched.add(group)
    _guardian().watch(group)


def _is_there(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True


@cache
def _guardian() -> Guardian:
    guardian = Guardian()
    guardian.start()
    atexit.register(guardian.close)
    return guardian
