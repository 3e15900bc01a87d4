"""Work that repeats at intervals."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import structlog

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@asynccontextmanager
async def repeated(
    work: Callable[[], Awaitable[None]], every_s: float, name: str, *, at_once: bool = True, passing: tuple[type[Exception], ...] = ()
) -> AsyncGenerator[None]:
    """Runs `work` every `every_s` seconds until the block ends. Errors do not end it: they are logged, except `passing` ones."""

    async def run() -> None:
        if not at_once:
            await asyncio.sleep(every_s)
        while True:
            try:
                with suppress(*passing):
                    await work()
            except Exception:  # noqa: BLE001 - one bad round must not end the others
                _log.exception("round_failed", then="it is tried again", name=name)
            await asyncio.sleep(every_s)

    task = asyncio.create_task(run(), name=name)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
