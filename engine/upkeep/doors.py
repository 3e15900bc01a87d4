"""Being a front door: its lease, and taking over calls that dead doors had accepted."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import structlog

from engine.store.claims import WORKFLOW, Claim, ClaimTable
from engine.store.clock import now
from engine.store.doors import DoorTable
from engine.upkeep.rounds import repeated
from toolagent.contracts.lanes import LaneFigures
from toolagent.core.failures import StoreUnavailableError

_AT_ONCE = 64
_OLD = timedelta(hours=1)
_FORGET_EVERY_S = 60.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class DoorKeeper:
    """Keeps the lease of one door, in a process that may be a `host` too.

    `adopt` gives an abandoned call a workflow of its own, `end_lane` ends the lane of a door; both may be repeated.
    `is_over` says whether the workflow of a call has ended or is not there.
    """

    def __init__(
        self,
        door: str,
        host: str | None,
        doors: DoorTable,
        claims: ClaimTable,
        adopt: Callable[[Claim], Awaitable[None]],
        end_lane: Callable[[str], Awaitable[None]],
        figures: Callable[[], LaneFigures],
        is_over: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._door, self._host, self._doors, self._claims = door, host, doors, claims
        self._adopt, self._end_lane, self._figures, self._is_over = adopt, end_lane, figures, is_over
        self._forget_at = 0.0

    async def open(self) -> None:
        """Raises StoreUnavailableError."""
        await self._doors.beat(self._door, self._host, self._figures())
        # The lease of an earlier life of this process need not expire: that process is gone.
        await self._clear(self._host)

    async def look(self) -> None:
        """Renew the lease, and take over what dead doors have left."""
        with suppress(StoreUnavailableError):
            await self._doors.beat(self._door, self._host, self._figures())
            await self._clear(None)
            living = [lane.door for lane in await self._doors.alive()]
            for claim in await self._claims.abandoned(living, _AT_ONCE):
                _log.warning("call_adopted", call_id=claim.call_id, door=claim.owner)
                await self._adopt(claim)
            if time.monotonic() >= self._forget_at:
                self._forget_at = time.monotonic() + _FORGET_EVERY_S
                await self._forget()

    async def _forget(self) -> None:
        """Claims of workflows that were terminated, so that the call was never settled: its request is deleted."""
        for call_id in await self._claims.of_workflows(now() - _OLD, _AT_ONCE):
            if await self._is_over(call_id):
                await self._claims.withdraw(call_id, WORKFLOW)

    async def leave(self) -> None:
        """The next door that looks takes over what is still claimed."""
        with suppress(StoreUnavailableError):  # the lease expires
            await self._doors.leave(self._door)

    async def _clear(self, host: str | None) -> None:
        for gone in await self._doors.gone(host, self._door):
            await self._end_lane(gone)
            await self._doors.leave(gone)


@asynccontextmanager
async def held_door(keeper: DoorKeeper, every_s: float) -> AsyncGenerator[None]:
    """Be that door until the block ends. Raises StoreUnavailableError at its beginning."""
    await keeper.open()
    try:
        async with repeated(keeper.look, every_s, "door lease"):
            yield
    finally:
        await keeper.leave()
