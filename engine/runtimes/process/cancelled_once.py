"""Work that may be cancelled often, and hears of it once: what it does to clean up is not cut off."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


async def cancelled_once(work: Coroutine[None, None, T]) -> T:
    """The outcome of the work. Who cancels us, however often, waits until it has cleaned up after itself."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        # Whoever cancelled us does not ask what it failed with, and asyncio would complain.
        _ = task.cancelled() or task.exception()
        raise
