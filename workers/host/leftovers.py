"""What tools left goes while the service runs, not only at its next start."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import structlog

from engine.calls.call_folders import CallFolders
from engine.disk.leftovers import LEFTOVERS, SET_ASIDE, discard

__all__ = ["sweep_set_aside", "sweeping_leftovers"]

_EVERY_S = 60.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def sweep_set_aside(state: Path) -> None:
    """To be called at start-up: what the last run could not remove. Blocks."""
    for pattern in (f"*/{SET_ASIDE}*", f"*/*/{SET_ASIDE}*"):
        for left in state.glob(pattern):
            discard(left)


@asynccontextmanager
async def sweeping_leftovers(folders: CallFolders, every_s: float = _EVERY_S) -> AsyncGenerator[None]:
    """Every minute until the block ends: what could not be removed, and what tools put beside the folders of their calls."""
    task = asyncio.create_task(_again_and_again(folders, every_s), name="sweep leftovers")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _again_and_again(folders: CallFolders, every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        try:
            await folders.sweep()
            stays = await asyncio.to_thread(LEFTOVERS.sweep)
        except OSError as error:
            _log.warning("leftovers_not_swept", reason=str(error))
        else:
            for path, reason in stays.items():
                _log.warning("leftover_stays", path=str(path), reason=reason)
