"""Telling Temporal, while something takes long, that we are alive and what we are doing."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from temporalio import activity

__all__ = ["Pulse", "beating"]

_INTERVAL_S = 1.0

_QUIET_S = 0.5
"""What ends before this says nothing: each heartbeat is a request of its own, a quarter of what a short call costs the server."""


class Pulse:
    """What each heartbeat says: the progress that people see, and how often the tool was asked, which the next attempt reads."""

    def __init__(self) -> None:
        info = activity.info()
        self._is_local = info.is_local
        earlier = info.heartbeat_details
        self._is_heard = False
        self._progress = ""
        self.sends: int = earlier[1] if len(earlier) > 1 else 0

    def say(self, progress: str) -> None:
        """What is being done now, in a few words."""
        self._progress = progress
        self._tell()

    def sending(self) -> None:
        """The tool is asked, once more."""
        self.sends += 1
        self._tell()

    def beat(self) -> None:
        """From now on everything is told at once."""
        self._is_heard = True
        self._tell()

    def _tell(self) -> None:
        if self._is_heard and not self._is_local:  # local activities have no heartbeats
            activity.heartbeat(self._progress, self.sends)


@asynccontextmanager
async def beating() -> AsyncGenerator[Pulse]:
    """Heartbeats until the block ends."""
    pulse = Pulse()

    async def beat() -> None:
        await asyncio.sleep(_QUIET_S)
        while True:
            pulse.beat()
            await asyncio.sleep(_INTERVAL_S)

    task = asyncio.create_task(beat())
    try:
        yield pulse
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
