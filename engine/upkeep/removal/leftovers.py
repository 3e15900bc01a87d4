"""Removes leftovers of tools, at the start of the service and while it runs."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import structlog

from engine.calls.call_folders import CallFolders
from engine.disk.leftovers import LEFTOVERS, SET_ASIDE, discard
from engine.runtimes.process.sweep import sweep
from engine.upkeep.rounds import repeated

_EVERY_S = 60.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def swept_state(state: Path, calls: Path) -> None:
    """Ends and removes what the last run on this state directory left behind. Call it before any tool runs."""
    for swept in await sweep(state):
        _log.warning("ended_leftover_process", pid=swept.pid, name=swept.name, worker=swept.worker)
    await asyncio.to_thread(_emptied, calls)
    await asyncio.to_thread(_sweep_set_aside, state)


def sweeping_leftovers(folders: CallFolders) -> AbstractAsyncContextManager[None]:
    """Removes, every minute, files that could not be removed before, and files that tools put beside the folders of their calls."""

    async def sweep_once() -> None:
        try:
            await folders.sweep()
            stays = await asyncio.to_thread(LEFTOVERS.sweep)
        except OSError as error:
            _log.warning("leftovers_not_swept", reason=str(error))
        else:
            for path, reason in stays.items():
                _log.warning("leftover_stays", path=str(path), reason=reason)

    return repeated(sweep_once, _EVERY_S, "sweep leftovers", at_once=False)


def _emptied(calls: Path) -> None:
    """Keeps the folders of tools: containers that outlived the last run have them mounted."""
    for folder in calls.iterdir() if calls.is_dir() else ():
        for left in folder.iterdir() if folder.is_dir() and not folder.is_symlink() and not folder.name.startswith(".") else (folder,):
            discard(left)


def _sweep_set_aside(state: Path) -> None:
    """Removes what the last run could not remove."""
    for pattern in (f"*/{SET_ASIDE}*", f"*/*/{SET_ASIDE}*"):
        for left in state.glob(pattern):
            discard(left)
