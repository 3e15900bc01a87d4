"""Telling Temporal, while something takes long, that we are alive and what we are doing."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from temporalio import activity

__all__ = ["beating"]

_INTERVAL_S = 1.0


@asynccontextmanager
async def beating() -> AsyncGenerator[Callable[[str], None]]:
    """Heartbeats until the block ends. Gives a function that says what is being done now; people see it as the task's progress.

    Local activities have no heartbeats.
    """
    if activity.info().is_local:
        yield lambda _progress: None
        return
    said: list[str] = []

    def say(progress: str) -> None:
        said[:] = [progress]
        activity.heartbeat(*said)

    async def beat() -> None:
        while True:
            activity.heartbeat(*said)
            await asyncio.sleep(_INTERVAL_S)

    task = asyncio.create_task(beat())
    try:
        yield say
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
