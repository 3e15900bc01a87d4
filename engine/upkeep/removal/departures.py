"""Ends tools that left all catalogs: after each import here, and at intervals, because other hosts import too."""

from contextlib import AbstractAsyncContextManager

import structlog

from engine.registry.catalog_watch import ImportCatalog
from engine.runtimes.running.departures import Departures
from engine.upkeep.rounds import repeated
from toolagent.contracts.records import CatalogFault
from toolagent.core.failures import StoreUnavailableError

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_LOOK_S = 10.0


def ending_after(imported: ImportCatalog, departures: Departures) -> ImportCatalog:
    """The same import, which then ends tools that it removed."""

    async def run() -> tuple[CatalogFault, ...]:
        faults = await imported()
        await _end(departures)
        return faults

    return run


def ending_departed(departures: Departures) -> AbstractAsyncContextManager[None]:
    """Looks at intervals until the block ends."""

    async def look() -> None:
        try:
            await _end(departures)
        except StoreUnavailableError as error:
            _log.info("departed_tools_not_looked_for", reason=str(error))

    return repeated(look, _LOOK_S, "end departed tools", at_once=False)


async def _end(departures: Departures) -> None:
    for tool_id in await departures.end():
        _log.info("tool_ended", tool_id=tool_id, reason="it is in no catalog any more")
