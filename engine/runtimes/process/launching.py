"""A launch that is never left half done."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

T = TypeVar("T")


async def launched(launch: Coroutine[None, None, T], end: Callable[[T], Awaitable[object]]) -> T:
    """What is launched. A cancellation waits until the launch is complete and `end` has ended it: half a launch cannot be undone."""
    launching = asyncio.create_task(launch)
    try:
        return await asyncio.shield(launching)
    except asyncio.CancelledError:
        ending = asyncio.create_task(_ended(launching, end))
        while not ending.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([ending])
        ending.result()
        raise


async def _ended(launching: asyncio.Task[T], end: Callable[[T], Awaitable[object]]) -> None:
    await asyncio.wait([launching])
    # What failed has cleaned up after itself.
    if not launching.cancelled() and launching.exception() is None:
        await end(launching.result())
