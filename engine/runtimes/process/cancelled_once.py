"""Work that is cancelled once, however often its waiters are: its clean-up is not interrupted."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

from engine.uncancelled import ended

T = TypeVar("T")


async def cancelled_once(work: Coroutine[None, None, T]) -> T:
    """The outcome of the work. A cancellation, however often repeated, waits for the clean-up of the work."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        await ended(task)
        # After a cancellation no one reads its failure, and asyncio would complain.
        _ = task.cancelled() or task.exception()
        raise
