"""Where this service keeps its files, from the settings, and the sweep of what nothing and nobody needs any more."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import structlog

from engine.registry.departures import departures_of
from engine.store.content import CONTENT_STORES
from engine.store.content.parts import ContentParts, UnusableContentStoreError
from engine.store.content.store import ContentStore
from engine.store.content_sweep import Swept, sweep_files
from engine.store.database import Database
from engine.store.task_retention import forget_tasks
from toolagent.core.failures import StoreUnavailableError
from workers.failures import CannotRun
from workers.settings.environment import environment
from workers.settings.kept import ContentSettings, RetentionSettings
from workers.state.directory import StateDirectory
from workers.state.secrets import SecretSource

__all__ = ["content_of", "sweeping"]

_SWEEP_EVERY_S = 3600.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def content_of(database: Database, settings: ContentSettings, state: StateDirectory) -> ContentStore:
    """Raises CannotRun when the settings name no store that can be used, or the secrets are not private."""
    secrets = SecretSource(environment(), state.root / "secrets")
    # Otherwise a file that others may read would look like one without the keys.
    secrets.check()
    parts = ContentParts(
        folder=state.content,
        database=database,
        secret=secrets.resolve,
        s3_bucket=settings.s3_bucket,
        s3_prefix=settings.s3_prefix,
        s3_endpoint=settings.s3_endpoint,
        s3_region=settings.s3_region,
    )
    try:
        return CONTENT_STORES[settings.content_store](parts)
    except UnusableContentStoreError as error:
        raise CannotRun(f"Files cannot be kept: {error}.") from error


@asynccontextmanager
async def sweeping(
    database: Database, content: ContentStore, spool: Path, settings: RetentionSettings, every_s: float = _SWEEP_EVERY_S
) -> AsyncGenerator[None]:
    """Sweep files, tasks that ended long ago, and hosts that never came back, now and every hour until the block ends.

    A sweep that is cut off is gone on with by the next one.
    """
    retention, of_tasks = timedelta(hours=settings.file_retention_hours), timedelta(hours=settings.task_retention_hours)
    task = asyncio.create_task(_sweep(database, content, spool, retention, of_tasks, every_s), name="sweep files")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _sweep(database: Database, content: ContentStore, spool: Path, retention: timedelta, of_tasks: timedelta, every_s: float) -> None:
    departures = departures_of(database)
    while True:
        try:
            for host in await departures.forget():
                _log.info("forgot_host", host=host, with_it="the tools that only its catalog had")
            if forgotten := await forget_tasks(database, of_tasks):
                _log.info("forgot_tasks", tasks=forgotten, with_them="their logs and conversations")
            swept = await sweep_files(database, content, spool, retention)
        except StoreUnavailableError as error:
            _log.warning("sweep_failed", reason=str(error))
        else:
            if swept != Swept():
                _log.info("swept_files", files=swept.files, contents=swept.contents, incoming=swept.incoming, damaged=swept.damaged)
        await asyncio.sleep(every_s)
