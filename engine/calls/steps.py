"""Steps of calls that have killed or frozen their process, and are not simply repeated.

An ordinary step leaves a trace in memory only. What a dead process was in is counted in the database by the next one on its state
directory, where every host sees it; a step that its time-out ended while nothing else could happen either is counted at once.
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
"""Attempts of a step that may be lost with their process before it is given up."""

_FRESH_S = 5.0
FROZEN_S = 5.0
"""An event loop that stands still so long counts as frozen. Every step may take at least ten seconds."""

_BEAT_S = 1.0
_SLOTS = 4096
_WIDTH = 128


class StepTrace:
    """Which steps are under way, in a file that outlives this process: a mapped page stays when one is killed, and costs no system call.

    `left` are the steps that another process on this file was in when it died; a step may be there more than once.
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
        """Gives how many attempts at this step of this call were lost before.

        A lost step may have killed its process, or only have run beside the one that did. Suspects run one at a
        time, so that only the culprit is lost again.
        """
        key = f"{step} {call_id}"
        lost = (await self._counted()).get(key, 0)
        async with self._suspects if 0 < lost < MOST_LOST else nullcontext(), self._traced(key):
            yield lost

    @asynccontextmanager
    async def _traced(self, key: str) -> AsyncGenerator[None]:
        pulse = _Pulse(asyncio.get_running_loop())
        with self._trace.under_way(key):
            try:
                yield
            finally:
                pulse.end()
                # Its time may be over, and then it is tried again, however it ended.
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
    """Notes for how long at most the event loop did nothing else, as soon as there is time for it."""

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
