"""Measures pauses of the event loop, and what ran in them.

One loop serves the whole process: during a pause no request is answered.
"""

import asyncio
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import PurePath
from types import FrameType

import structlog

from toolagent.contracts.http import LoopPause

_TICK_S = 0.1
_LOOK_S = 0.25
_WINDOW_S = 300.0
_STUCK_S = 10.0
"""A loop that pauses so long may never report it itself."""

_NOTED_S = 0.01
_DEPTH = 8
_WAITING = (
    "threading.py",
    "queue.py",
    "selectors.py",
    "socket.py",
    "subprocess.py",
    "concurrent/futures/thread.py",
    "aiosqlite/core.py",
    "anyio/_backends/_asyncio.py",
)
"""Files in which idle threads wait."""

_UNSEEN = "not seen: it held the interpreter's lock to its end"

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class LoopWatch:
    """Watches one loop. Logs pauses of `warn_s` seconds or more, with what ran in them."""

    def __init__(self, warn_s: float = 1.0) -> None:
        self._warn_s = warn_s
        self._pauses: deque[tuple[float, LoopPause]] = deque()
        """In order of time; each is longer than those after it."""
        self._ticked = time.monotonic()
        self._seen: tuple[float, list[str]] = (0.0, [])
        """The last tick before a look, and what ran at the look."""
        self._ended = threading.Event()
        self._timer: asyncio.TimerHandle | None = None

    def longest(self) -> LoopPause:
        """The longest pause of the last five minutes."""
        while self._pauses and self._pauses[0][0] < time.monotonic() - _WINDOW_S:
            self._pauses.popleft()
        return self._pauses[0][1] if self._pauses else LoopPause(window_s=_WINDOW_S)

    async def run(self) -> None:
        """Runs until it is cancelled."""
        looks = threading.Thread(target=self._look, args=(threading.get_ident(),), name="loop watch", daemon=True)
        looks.start()
        try:
            while True:
                self._ticked = time.monotonic()
                await asyncio.sleep(_TICK_S)
                self._note(time.monotonic() - self._ticked - _TICK_S)
        finally:
            self._ended.set()
            looks.join()

    def _note(self, pause_s: float) -> None:
        if pause_s < _NOTED_S:
            return
        while self._pauses and self._pauses[-1][1].longest_pause_s <= pause_s:
            self._pauses.pop()
        pause = LoopPause(longest_pause_s=round(pause_s, 3), at=datetime.now(UTC), window_s=_WINDOW_S)
        self._pauses.append((time.monotonic(), pause))
        if pause_s >= self._warn_s:
            ticked, ran = self._seen
            _log.warning("loop_stood_still", seconds=pause.longest_pause_s, ran=ran if ticked == self._ticked else [_UNSEEN])

    def _look(self, loop_thread: int) -> None:
        """Runs in its own thread. Reads stacks only while the loop pauses."""
        told = 0.0
        while not self._ended.wait(min(_LOOK_S, self._warn_s / 2)):
            ticked = self._ticked
            stands_s = time.monotonic() - ticked
            if stands_s > self._warn_s / 2 + _TICK_S and self._seen[0] != ticked:
                self._seen = (ticked, [*_running(loop_thread)])
            if stands_s > _STUCK_S and told != ticked:
                told = ticked
                _log.warning("loop_stands_still", seconds=round(stands_s, 3), ran=self._seen[1])


@asynccontextmanager
async def watched_loop() -> AsyncGenerator[LoopWatch]:
    """Watches the loop until the block ends."""
    watch = LoopWatch()
    task = asyncio.create_task(watch.run(), name="loop watch")
    try:
        yield watch
    finally:
        task.cancel()
        await asyncio.wait((task,))


def _running(loop_thread: int) -> Iterator[str]:
    """The stack of the loop's thread, then of every other busy thread, which may hold the interpreter's lock."""
    frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - documented; nothing else shows other threads
    yield f"loop: {_stack(frames.pop(loop_thread))}"
    frames.pop(threading.get_ident(), None)
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in frames.items():
        if not frame.f_code.co_filename.endswith(_WAITING):
            yield f"{names.get(ident, ident)}: {_stack(frame)}"


def _stack(innermost: FrameType) -> str:
    """The innermost frame first."""
    shown: list[str] = []
    frame: FrameType | None = innermost
    while frame is not None and len(shown) < _DEPTH:
        place = "/".join(PurePath(frame.f_code.co_filename).parts[-2:])
        shown.append(f"{frame.f_code.co_name} ({place}:{frame.f_lineno})")
        frame = frame.f_back
    return " < ".join(shown)
