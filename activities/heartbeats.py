"""Telling Temporal, while something takes long, that we are alive and what we are doing."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from temporalio import activity

__all__ = ["Pulse", "beating"]

_INTERVAL_S = 1.0


class Pulse:
    """What each heartbeat says: the progress that people see, and how often the tool was asked, which the next attempt reads."""

    def __init__(self) -> None:
        info = activity.info()
        self._is_local = info.is_local
        earlier = info.heartbeat_details
        self._progress = ""
        self.sends: int = earlier[1] if len(earlier) > 1 else 0

    def say(self, progress: str) -> None:
        """What is being done now, in a few words."""
        self._progress = progress
        self.beat()

    def sending(self) -> None:
        """The tool is asked, once more."""
        self.sends += 1
        self.beat()

    def beat(self) -> None:
        if not self._is_local:  # local activities have no heartbeats
            activity.heartbeat(self._progress, self.sends)


@asynccontextmanager
async def beating() -> AsyncGenerator[Pulse]:
    """Heartbeats until the block ends."""
    pulse = Pulse()

    async def beat() -> None:
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
