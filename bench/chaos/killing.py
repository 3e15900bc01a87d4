"""Kills by plan, and starts again whoever is dead."""

import asyncio
import time
from collections.abc import Iterable

from rich.console import Console

from bench.chaos.cast import Cast
from bench.chaos.plan import Kill


async def kill_all(cast: Cast, kills: Iterable[Kill], duration: float, console: Console) -> None:
    """One after the other; whoever is dead is started again, also when this is cancelled."""
    end = time.monotonic() + duration
    for kill in kills:
        await asyncio.sleep(kill.after_s)
        if time.monotonic() > end:
            return
        console.print(f"kill -9 {kill.victim}", highlight=False)
        cast.kill(kill.victim)
        try:
            await asyncio.sleep(kill.rest_s)
        finally:
            cast.start(kill.victim)


async def revive(cast: Cast) -> None:
    while True:
        await asyncio.sleep(1)
        cast.revive()


async def stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait((task,))
    if not task.cancelled() and (error := task.exception()):
        raise error
