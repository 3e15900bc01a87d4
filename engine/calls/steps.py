"""Counts steps of calls that killed or froze their process, so that they are not repeated without end.

An ordinary step leaves a trace only in mapped memory. The next process on the same state directory counts the steps of a dead one in the
database, where every host sees them. A step that froze its event loop is counted at once.
"""

import asyncio
import mmap
import os
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path

from engine.store.lost_steps import LostStepTable

MOST_LOST = 2
"""Lost attempts at a step before it is given up."""

_FRESH_S = 5.0
FROZEN_S = 5.0
"""An event loop that pauses so long counts as frozen. Every step may take at least ten seconds."""

_BEAT_S = 1.0
_SLOTS = 4096
_WIDTH = 128


class StepTrace:
    """The steps in progress, in a mapped file: it outlives a killed process, and costs no system call.

    `left` are the steps that another process was in when it died. A step may be there more than once.
    """

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
        """Clears `left`, after the database has counted it."""
        for slot in self._free:
            self._memory[slot : slot + _WIDTH] = bytes(_WIDTH)
        self.left = ()

    @contextmanager
    def under_way(self, step: str) -> Generator[None]:
        """`step` is ASCII. Surplus steps are not traced."""
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


class Steps:
    """One per process and state directory."""

    def __init__(self, trace: StepTrace, table: LostStepTable) -> None:
        self._trace, self._table = trace, table
        self._counts: Mapping[str, int] = {}
        self._read_at = -_FRESH_S
        self._opening = asyncio.Lock()
        self._suspects = asyncio.Lock()

    @asynccontextmanager
    async def under_way(self, step: str, call_id: str) -> AsyncGenerator[int]:
        """Gives the number of lost attempts at this step of this call.

        A lost step may have killed its process, or have run beside the one that did. Suspects run one at a time, so that only the culprit
        is lost again.
        """
        key = f"{step} {call_id}"
        lost = (await self._counted()).get(key, 0)
        async with self._suspects if 0 < lost < MOST_LOST else nullcontext():
            pulse = _Pulse(asyncio.get_running_loop())
            with self._trace.under_way(key):
                try:
                    yield lost
                finally:
                    pulse.end()
                    # Its time-out may have passed; then Temporal retries it, however it ended.
                    if pulse.stood_still_s > FROZEN_S:
                        await asyncio.shield(self._table.add([key]))
                        self._read_at = -_FRESH_S

    async def _counted(self) -> Mapping[str, int]:
        if time.monotonic() - self._read_at < _FRESH_S:
            return self._counts
        async with self._opening:
            if time.monotonic() - self._read_at >= _FRESH_S:
                if self._trace.left:
                    await self._table.add(self._trace.left)
                    self._trace.forget_left()
                self._counts = await self._table.counts()
                self._read_at = time.monotonic()
        return self._counts


class _Pulse:
    """Measures the longest pause of the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._beat_at, self._longest = loop, time.monotonic(), 0.0
        self._next = loop.call_later(_BEAT_S, self._beat)

    @property
    def stood_still_s(self) -> float:
        return max(self._longest, time.monotonic() - self._beat_at)

    def end(self) -> None:
        self._next.cancel()

    def _beat(self) -> None:
        self._longest = self.stood_still_s
        self._beat_at = time.monotonic()
        self._next = self._loop.call_later(_BEAT_S, self._beat)
