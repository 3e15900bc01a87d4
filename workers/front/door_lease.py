"""A front door's lease, and what it sees to while it has one: calls that doors which are gone had accepted."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import structlog

from engine.store.claims import Claim, ClaimTable
from engine.store.doors import DoorTable
from toolagent.client.failures import AnswerPendingError, CallRefusedError
from toolagent.core.failures import StoreUnavailableError

__all__ = ["held_door"]

_AT_ONCE = 64

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Adopt = Callable[[Claim], Awaitable[None]]
"""Gives a call that nobody has in hand a workflow of its own. Raises CallRefusedError, AnswerPendingError."""


@asynccontextmanager
async def held_door(
    door: str,
    host: str | None,
    doors: DoorTable,
    claims: ClaimTable,
    adopt: Adopt,
    end_lane: Callable[[str], Awaitable[None]],
    beat_s: float,
) -> AsyncGenerator[None]:
    """Be a door until the block ends. What an earlier life of this process had accepted goes on at once."""
    await doors.beat(door, host)
    for gone in await doors.gone(host, door):
        await doors.leave(gone)
        await end_lane(gone)
    task = asyncio.create_task(_held(door, host, doors, claims, adopt, end_lane, beat_s), name="door lease")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        with suppress(StoreUnavailableError):
            await doors.leave(door)


async def _held(
    door: str,
    host: str | None,
    doors: DoorTable,
    claims: ClaimTable,
    adopt: Adopt,
    end_lane: Callable[[str], Awaitable[None]],
    beat_s: float,
) -> None:
    while True:
        with suppress(StoreUnavailableError):
            await doors.beat(door, host)
            for gone in await doors.gone(None, door):
                await doors.leave(gone)
                await end_lane(gone)
            for claim in await claims.abandoned(await doors.alive(), _AT_ONCE):
                await _adopted(claim, adopt)
        await asyncio.sleep(beat_s)


async def _adopted(claim: Claim, adopt: Adopt) -> None:
    try:
        await adopt(claim)
        _log.warning("adopted_call", call_id=claim.call_id, door=claim.owner)
    except (CallRefusedError, AnswerPendingError) as error:
        _log.warning("call_not_adopted", call_id=claim.call_id, error=str(error))
