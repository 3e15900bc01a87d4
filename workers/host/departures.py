"""Ending tools that are in no catalog any more: after each import here, and now and then, as other hosts import too."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import structlog

from engine.registry.catalog_watch import ImportCatalog
from engine.runtimes.running.departures import Departures
from toolagent.contracts.records import CatalogFault
from toolagent.core.failures import StoreUnavailableError

__all__ = ["ending_after", "ending_departed"]

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_LOOK_S = 10.0


def ending_after(imported: ImportCatalog, departures: Departures) -> ImportCatalog:
    """The same import; what it took out ends."""

    async def run() -> tuple[CatalogFault, ...]:
        faults = await imported()
        await _end(departures)
        return faults

    return run


@asynccontextmanager
async def ending_departed(departures: Departures, look_s: float = _LOOK_S) -> AsyncGenerator[None]:
    """Look again and again until the block ends."""
    looking = asyncio.create_task(_again_and_again(departures, look_s), name="end departed tools")
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def _again_and_again(departures: Departures, look_s: float) -> None:
    while True:
        await asyncio.sleep(look_s)
        try:
            await _end(departures)
        except StoreUnavailableError as error:
            _log.info("departed_tools_not_looked_for", reason=str(error))


async def _end(departures: Departures) -> None:
    for tool_id in await departures.end():
        _log.info("tool_ended", tool_id=tool_id, reason="it is in no catalog any more")
