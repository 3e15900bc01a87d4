"""Work in threads that a cancelled task waits for: otherwise it could write again what is being removed."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


async def finished(work: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
    """As `asyncio.to_thread`, whose thread goes on by itself when it is cancelled: this waits for its end, and is cancelled then."""
    thread = asyncio.ensure_future(asyncio.to_thread(work, *arguments, **named))
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        while not thread.done():
            # However often it is cancelled: the thread is not told.
            with suppress(asyncio.CancelledError):
                await asyncio.wait([thread])
        raise
