"""Work that is done again and again."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

__all__ = ["repeated"]


@asynccontextmanager
async def repeated(work: Callable[[], Awaitable[None]], every_s: float, name: str, *, at_once: bool = True) -> AsyncGenerator[None]:
    """Every so many seconds until the block ends. A round that is cut off is gone on with by the next one."""
    task = asyncio.create_task(_again_and_again(work, every_s, at_once=at_once), name=name)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _again_and_again(work: Callable[[], Awaitable[None]], every_s: float, *, at_once: bool) -> None:
    if at_once:
        await work()
    while True:
        await asyncio.sleep(every_s)
        await work()
