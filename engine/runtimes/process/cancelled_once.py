"""Work that is cancelled at most once, so that its clean-up is not interrupted."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from engine.uncancelled import ended

T = TypeVar("T")


async def cancelled_once(work: Coroutine[None, None, T]) -> T:
    """Run the work. A cancellation, even if repeated, cancels it once and waits for its clean-up."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        await ended(task)
        # Read the failure, as asyncio warns about unread ones.
        _ = task.cancelled() or task.exception()
        raise
