"""Removes unused files, old calls, tasks, sessions and chats, and hosts that stayed away."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import structlog

from engine.store.content.store import ContentStore
from engine.store.content_sweep import Swept, sweep_files
from engine.store.database import Database
from engine.store.retention import forget_calls, forget_chats, forget_left_over, forget_sessions, forget_tasks
from engine.upkeep.rounds import repeated
from toolagent.core.failures import StoreUnavailableError

_EVERY_S = 3600.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long to keep an unused file, a call, task or session after its end, and a chat after its last message."""

    files: timedelta
    calls: timedelta
    tasks: timedelta
    chats: timedelta


def sweeping_files(
    database: Database,
    content: ContentStore,
    spool: Path,
    retention: Retention,
    forget_hosts: Callable[[], Awaitable[Iterable[str]]],
    every_s: float = _EVERY_S,
) -> AbstractAsyncContextManager[None]:
    """Sweeps now and every hour until the block ends."""

    async def sweep() -> None:
        try:
            for host in await forget_hosts():
                _log.info("forgot_host", host=host, with_it="the tools that only its catalog had")
            await _forget_old(database, retention)
            swept = await sweep_files(database, content, spool, retention.files)
        except StoreUnavailableError as error:
            _log.warning("sweep_failed", reason=str(error))
        else:
            if swept != Swept():
                _log.info("swept_files", files=swept.files, contents=swept.contents, incoming=swept.incoming, damaged=swept.damaged)

    return repeated(sweep, every_s, "sweep files")


async def _forget_old(database: Database, retention: Retention) -> None:
    if forgotten := await forget_calls(database, retention.calls):
        _log.info("forgot_calls", calls=forgotten, with_them="their results and events")
    if forgotten := await forget_tasks(database, retention.tasks):
        _log.info("forgot_tasks", tasks=forgotten, with_them="their logs and conversations")
    if forgotten := await forget_sessions(database, retention.tasks):
        _log.info("forgot_sessions", sessions=forgotten)
    if forgotten := await forget_chats(database, retention.chats):
        _log.info("forgot_chats", chats=forgotten, with_them="their turns, events and conversations")
    if forgotten := await forget_left_over(database):
        _log.info("forgot_conversations", conversations=forgotten, reason="their chats were deleted before they ended")
