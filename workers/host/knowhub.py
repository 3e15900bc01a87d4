"""KnowHub on a host: its client, and regular synchronisation."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from functools import partial

import structlog
from temporalio.client import Client
from temporalio.service import RPCError

from engine.knowhub.client import SECRET, KnowHubClient
from engine.knowhub.sync import CatalogWatch
from engine.store.catalog_state import CatalogState
from engine.upkeep.rounds import repeated
from toolagent.core.failures import StoreUnavailableError
from workers.settings.hosts import TableSettings
from workers.state.directory import StateDirectory
from workers.state.secrets import secrets_of
from workers.temporal.maintain_schedule import KnowHubSchedule, kept_schedule

_LOOK_S = 5.0

_log = structlog.stdlib.get_logger(__name__)


@asynccontextmanager
async def some_knowhub(settings: TableSettings, state: StateDirectory) -> AsyncGenerator[KnowHubClient | None]:
    """The client of KnowHub; None if it is not set."""
    if settings.knowhub_url is None:
        yield None
        return
    async with aclosing(KnowHubClient(settings.knowhub_url, partial(secrets_of(state).resolve, SECRET))) as client:
        yield client


@asynccontextmanager
async def synchronised(client: Client, catalog: CatalogState, every_s: float) -> AsyncGenerator[None]:
    """Synchronise by the schedule, and after each change of the catalog, until the block ends."""
    schedule = KnowHubSchedule(client, every_s)
    watch = CatalogWatch(catalog, schedule.trigger)

    async def look() -> None:
        try:
            await watch.look()
        except (RPCError, StoreUnavailableError) as error:
            _log.info("knowhub_not_triggered", reason=str(error), then="it is tried again")

    async with kept_schedule(schedule), repeated(look, _LOOK_S, "watch for KnowHub"):
        yield
