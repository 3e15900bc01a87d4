"""Which steps of calls are under way in this process, in a file that outlives it.

The pages of a file that is mapped into memory stay when a process is killed. Writing there costs a step no system call.
"""

import mmap
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["StepTrace"]

_SLOTS = 4096
_WIDTH = 128


class StepTrace:
    """`left` are the steps that another process on this file was in when it died; a step may be there more than once."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.ftruncate(handle, _SLOTS * _WIDTH)
            self._memory = mmap.mmap(handle, _SLOTS * _WIDTH)
        finally:
            os.close(handle)
        self._free = [slot * _WIDTH for slot in range(_SLOTS)]
        found = (self._memory[slot : slot + _WIDTH].rstrip(b"\0") for slot in self._free)
        self.left = tuple(text.decode("ascii", "replace") for text in found if text)

    def forget_left(self) -> None:
        """What was left has been written down elsewhere."""
        for slot in self._free:
            self._memory[slot : slot + _WIDTH] = bytes(_WIDTH)
        self.left = ()

    @contextmanager
    def under_way(self, step: str) -> Generator[None]:
        """`step` is ASCII. Where there are too many at once, one is not traced."""
        slot = self._free.pop() if self._free else None
        if slot is None:
            yield
            return
        self._memory[slot : slot + _WIDTH] = step.encode("ascii", "replace")[:_WIDTH].ljust(_WIDTH, b"\0")
        try:
            yield
        finally:
            self._memory[slot : slot + _WIDTH] = bytes(_WIDTH)
            self._free.append(slot)
