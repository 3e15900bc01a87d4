"""Work beside a block of code."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager

import structlog

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@asynccontextmanager
async def beside(name: str, *works: Coroutine[object, object, object]) -> AsyncGenerator[None]:
    """Run these coroutines until the block ends, then cancel them."""
    tasks = [asyncio.create_task(work, name=name) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for error in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(error, Exception):
                _log.error("work_beside_failed", name=name, exc_info=error)
