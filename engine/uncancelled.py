"""Waiting that a cancel does not cut short: what is waited for cannot be left half done."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def ended(work: "asyncio.Future[T]") -> asyncio.CancelledError | None:
    """When it has, well or not; and who cancelled us meanwhile, last. It is not told."""
    cancelled = None
    while not work.done():
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


async def finished(work: Awaitable[T]) -> T:
    """Its outcome; where we are cancelled meanwhile, that, once it has ended."""
    task = asyncio.ensure_future(work)
    if (cancelled := await ended(task)) is not None:
        _ = task.cancelled() or task.exception()  # else asyncio would complain
        raise cancelled
    return task.result()
