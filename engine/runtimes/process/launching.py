"""Launches that are never left incomplete."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from engine.uncancelled import ended

T = TypeVar("T")


async def launched(launch: Coroutine[None, None, T], end: Callable[[T], Awaitable[object]]) -> T:
    """Run the launch. A cancellation waits until it is complete and `end` has undone it: an incomplete launch cannot be undone."""
    launching = asyncio.create_task(launch)
    if (cancelled := await ended(launching)) is None:
        return launching.result()
    # A failed launch has cleaned up after itself.
    if not launching.cancelled() and launching.exception() is None:
        ending = asyncio.ensure_future(end(launching.result()))
        await ended(ending)
        ending.result()
    raise cancelled
