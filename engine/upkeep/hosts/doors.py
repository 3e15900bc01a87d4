"""Being a front door: its lease; and taking over calls that dead doors had accepted."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Protocol

import structlog

from engine.calling.lane import Flight
from engine.store.claims import WORKFLOW, Claim, ClaimTable
from engine.store.doors import DoorTable
from engine.upkeep.rounds import repeated
from toolagent.contracts.lanes import LaneFigures
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.calls.lanes import LaneUnreachableError

_AT_ONCE = 64
_OLD = timedelta(hours=1)
_OLDEST = timedelta(days=7)
"""No call is under way for longer, whoever makes it."""

_FORGOTTEN = timedelta(seconds=10)
_FORGET_EVERY_S = 60.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Workflows(Protocol):
    """What a door asks of Temporal. All of it may be repeated."""

    async def end_lane(self, of: str) -> None:
        """Of a door that is gone. Raises LaneUnreachableError."""
        ...

    async def is_over(self, call_id: str) -> bool | None:
        """Whether the workflow of a call has ended; None where none has its id: another one may make it, as a part of its work."""
        ...


class OwnLane(Protocol):
    @property
    def figures(self) -> LaneFigures: ...

    def hand_on(self, flight: Flight) -> None:
        """Give a call a workflow of its own, unless it is on its way here."""
        ...


Adopt = Callable[[Claim], Awaitable[None]]
"""Gives a call that no process has in hand a workflow of its own. Raises LaneUnreachableError, StoreUnavailableError."""


class Successor:
    """Takes over from doors that are gone, in any process that is alive; `own` is its door, if it is one."""

    def __init__(self, doors: DoorTable, claims: ClaimTable, workflows: Workflows, adopt: Adopt, own: str = "") -> None:
        self._doors, self._claims, self._workflows, self._adopt, self._own = doors, claims, workflows, adopt, own
        self._left = set[str]()
        """What the last rounds found to be adopted."""
        self._ended_at = ""
        """The call at which the last round ended early. The next one begins behind it: one that fails keeps no others from their turn."""

    async def look(self) -> None:
        """Take over what dead doors have left, until Temporal does not answer."""
        with suppress(StoreUnavailableError, LaneUnreachableError):
            await self.clear(None)
            await self._claims.drop_ended()  # else their calls would get workflows, to be told so
            await self._adopt_left()

    async def forget(self) -> None:
        """Drop claims of workflows that were ended from outside, so that nobody settled the call: what its caller sent goes.

        Temporal is asked after each old one, which may be many, so only one process does: the first living door, or who finds none.
        """
        with suppress(StoreUnavailableError):
            if self._own == next((lane.door for lane in await self._doors.alive()), ""):
                await self._forget()

    async def clear(self, host: str | None) -> None:
        """End the lanes of doors that are gone, also of earlier lives of the `host`. Raises StoreUnavailableError."""
        for gone in await self._doors.gone(host, self._own):
            with suppress(LaneUnreachableError):  # nothing but its row says that there is a lane to be ended: it stays
                await self._workflows.end_lane(gone)
                await self._doors.leave(gone)

    async def _adopt_left(self) -> None:
        behind, seen = self._ended_at, set[str]()

        async def page(after: str) -> Sequence[Claim]:
            # Looked at anew: a door that has come since is alive.
            living = [lane.door for lane in await self._doors.alive()]
            return await self._claims.abandoned(living, _AT_ONCE, after)

        async def take_on(claim: Claim) -> None:
            self._ended_at = claim.call_id
            seen.add(claim.call_id)
            await self._take_on(claim)

        await _with_each(page, take_on, behind)
        self._left, self._ended_at = seen | {call_id for call_id in self._left if call_id <= behind}, ""

    async def _take_on(self, claim: Claim) -> None:
        """What stays is said once."""
        is_news = claim.call_id not in self._left
        self._left.add(claim.call_id)
        if claim.call is not None:
            if is_news:
                _log.warning("call_adopted", call_id=claim.call_id, door=claim.owner)
            await self._adopt(claim)
        elif is_news:
            _log.error("claim_unreadable", call_id=claim.call_id, door=claim.owner, then="a door of the version that wrote it adopts it")

    async def _forget(self) -> None:
        async def withdraw(claim: Claim, ended: Collection[bool | None]) -> None:
            if await self._workflows.is_over(claim.call_id) in ended:
                await self._claims.withdraw(claim.call_id, WORKFLOW)

        for age, ended in ((_OLD, (True,)), (_OLDEST, (True, None))):
            await _with_each(partial(self._claims.held_for, WORKFLOW, age, _AT_ONCE), partial(withdraw, ended=ended))


class DoorKeeper:
    """Keeps the lease of one door, in a process that may be a `host` too."""

    def __init__(
        self, door: str, host: str | None, doors: DoorTable, claims: ClaimTable, workflows: Workflows, lane: OwnLane, adopt: Adopt
    ) -> None:
        self._door, self._host, self._doors, self._claims, self._lane = door, host, doors, claims, lane
        self._successor = Successor(doors, claims, workflows, adopt, door)

    async def open(self) -> None:
        """Raises StoreUnavailableError."""
        await self._doors.beat(self._door, self._host, self._lane.figures)
        # An earlier life of this process needs no lease to run out: it is gone.
        await self._successor.clear(self._host)

    async def beat(self) -> None:
        """Renew the lease."""
        with suppress(StoreUnavailableError):
            await self._doors.beat(self._door, self._host, self._lane.figures)

    async def look(self) -> None:
        """See to calls that nobody has in hand."""
        await self._successor.look()
        with suppress(StoreUnavailableError):
            await self._remember()

    async def forget(self) -> None:
        """Drop what no workflow has in hand any more."""
        await self._successor.forget()

    async def leave(self) -> None:
        """The next door that looks takes over what is still claimed."""
        with suppress(StoreUnavailableError):  # the lease expires
            await self._doors.leave(self._door)

    async def _remember(self) -> None:
        """Calls that were accepted here without our knowing it: the database was lost, or the caller, while they were claimed."""

        async def hand_on(claim: Claim) -> None:
            if claim.call is not None:
                self._lane.hand_on(Flight(claim, claim.call, is_accepted=True))

        await _with_each(partial(self._claims.held_for, self._door, _FORGOTTEN, _AT_ONCE), hand_on)


async def _with_each(page: Callable[[str], Awaitable[Sequence[Claim]]], do: Callable[[Claim], Awaitable[None]], after: str = "") -> None:
    """Page by page, beyond one call: those that stay where they are keep no others from their turn."""
    is_full = True
    while is_full:
        found = await page(after)
        for claim in found:
            await do(claim)
            after = claim.call_id
        is_full = len(found) == _AT_ONCE


def seen_doors(doors: DoorTable, every_s: float) -> AbstractAsyncContextManager[None]:
    """Have a process that is no door notice for how long it could see none, until the block ends."""

    async def look() -> None:
        with suppress(StoreUnavailableError):
            await doors.look()

    return repeated(look, every_s, "sight of doors")


@asynccontextmanager
async def succeeding(successor: Successor, every_s: float) -> AsyncGenerator[None]:
    """Take over from doors that are gone, in a process that is none, until the block ends."""
    async with repeated(successor.look, every_s, "calls of doors that are gone"), _forgetting(successor.forget):
        yield


def _forgetting(forget: Callable[[], Awaitable[None]]) -> AbstractAsyncContextManager[None]:
    """Of its own, since Temporal may take long: nothing may keep calls from being adopted."""
    return repeated(forget, _FORGET_EVERY_S, "claims of workflows that are over")


@asynccontextmanager
async def held_door(keeper: DoorKeeper, every_s: float, is_lane_open: Callable[[], bool]) -> AsyncGenerator[None]:
    """Be that door until the block ends. Raises StoreUnavailableError at its beginning.

    A door whose lane is still open at the end does not leave: when its lease is over, another one ends that lane.
    """
    await keeper.open()
    try:
        # Of their own, since nothing may keep a lease from being renewed.
        beating, looking = repeated(keeper.beat, every_s, "door lease"), repeated(keeper.look, every_s, "calls of other doors")
        async with beating, looking, _forgetting(keeper.forget):
            yield
    finally:
        if not is_lane_open():
            await keeper.leave()
