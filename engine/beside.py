"""Work beside a block of code."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager


@asynccontextmanager
async def beside(name: str, *works: Coroutine[object, object, object]) -> AsyncGenerator[None]:
    """Run these coroutines until the block ends, then cancel them."""
    tasks = [asyncio.create_task(work, name=name) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
