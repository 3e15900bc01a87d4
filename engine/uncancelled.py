"""Waits that a cancellation does not cut short, for work that must not be left half done."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def ended(work: "asyncio.Future[T]") -> asyncio.CancelledError | None:
    """Waits until the work has ended, in success or failure. Returns the last cancellation meanwhile, without raising it."""
    cancelled = None
    while not work.done():
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


async def finished(work: Awaitable[T]) -> T:
    """The outcome of the work. If the caller was cancelled meanwhile, raises that once the work has ended."""
    task = asyncio.ensure_future(work)
    if (cancelled := await ended(task)) is not None:
        _ = task.cancelled() or task.exception()  # else asyncio would complain
        raise cancelled
    return task.result()
