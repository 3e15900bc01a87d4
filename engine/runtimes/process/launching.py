"""A launch that is never left half done."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from engine.uncancelled import ended

T = TypeVar("T")


async def launched(launch: Coroutine[None, None, T], end: Callable[[T], Awaitable[object]]) -> T:
    """What is launched. A cancellation waits until the launch is complete and `end` has ended it: half a launch cannot be undone."""
    launching = asyncio.create_task(launch)
    if (cancelled := await ended(launching)) is None:
        return launching.result()
    # What failed has cleaned up after itself.
    if not launching.cancelled() and launching.exception() is None:
        ending = asyncio.ensure_future(end(launching.result()))
        await ended(ending)
        ending.result()
    raise cancelled
