"""Work that is done again and again."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import structlog

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@asynccontextmanager
async def repeated(work: Callable[[], Awaitable[None]], every_s: float, name: str, *, at_once: bool = True) -> AsyncGenerator[None]:
    """Every so many seconds until the block ends. The next round continues one that was interrupted."""
    task = asyncio.create_task(_again_and_again(work, every_s, name, at_once=at_once), name=name)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _again_and_again(work: Callable[[], Awaitable[None]], every_s: float, name: str, *, at_once: bool) -> None:
    if not at_once:
        await asyncio.sleep(every_s)
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001 - one bad round must not end the others
            _log.exception("round_failed", then="it is tried again", name=name)
        await asyncio.sleep(every_s)
