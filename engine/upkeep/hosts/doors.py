"""The lease of a front door, and the takeover of calls that dead doors had accepted."""

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
"""No call takes longer."""

_FORGOTTEN = timedelta(seconds=10)
_FORGET_EVERY_S = 60.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Workflows(Protocol):
    """What a door asks of Temporal. Every method is idempotent."""

    async def end_lane(self, of: str) -> None:
        """Ends the lane of a dead door. Raises LaneUnreachableError."""
        ...

    async def is_over(self, call_id: str) -> bool | None:
        """Whether the workflow of a call has ended. None: no workflow has its id, but another one may make it."""
        ...


class OwnLane(Protocol):
    @property
    def figures(self) -> LaneFigures: ...

    def hand_on(self, flight: Flight) -> None:
        """Gives a call its own workflow, unless it is in flight here."""
        ...


Adopt = Callable[[Claim], Awaitable[None]]
"""Gives a call that no process holds its own workflow. Raises LaneUnreachableError, StoreUnavailableError."""


class Successor:
    """Takes over from dead doors, in any living process. `own` is the door of the process, if it has one."""

    def __init__(self, doors: DoorTable, claims: ClaimTable, workflows: Workflows, adopt: Adopt, own: str = "") -> None:
        self._doors, self._claims, self._workflows, self._adopt, self._own = doors, claims, workflows, adopt, own
        self._left = set[str]()
        """Calls that the last rounds found abandoned."""
        self._ended_at = ""
        """The call at which the last round stopped early. The next round begins after it, so that one bad call does not block others."""

    async def look(self) -> None:
        """Takes over the calls of dead doors, as long as Temporal answers."""
        with suppress(StoreUnavailableError, LaneUnreachableError):
            await self.clear(None)
            await self._claims.drop_ended()  # else ended calls would get workflows
            await self._adopt_left()

    async def forget(self) -> None:
        """Drops the claims of workflows that were ended from outside and never settled their call.

        It asks Temporal about each old claim, so only one process does it: the first living door, or any process if there is none.
        """
        with suppress(StoreUnavailableError):
            if self._own == next((lane.door for lane in await self._doors.alive()), ""):
                await self._forget()

    async def clear(self, host: str | None) -> None:
        """Ends the lanes of dead doors, also of earlier lives of the `host`. Raises StoreUnavailableError."""
        for gone in await self._doors.gone(host, self._own):
            with suppress(LaneUnreachableError):  # the row stays, because only it tells of the lane
                await self._workflows.end_lane(gone)
                await self._doors.leave(gone)

    async def _adopt_left(self) -> None:
        behind, seen = self._ended_at, set[str]()

        async def page(after: str) -> Sequence[Claim]:
            # Read anew for each page: a new door is alive.
            living = [lane.door for lane in await self._doors.alive()]
            return await self._claims.abandoned(living, _AT_ONCE, after)

        async def take_on(claim: Claim) -> None:
            self._ended_at = claim.call_id
            seen.add(claim.call_id)
            await self._take_on(claim)

        await _with_each(page, take_on, behind)
        self._left, self._ended_at = seen | {call_id for call_id in self._left if call_id <= behind}, ""

    async def _take_on(self, claim: Claim) -> None:
        """Logs a call that stays abandoned only once."""
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
    """Keeps the lease of one door. Its process may be a `host` too."""

    def __init__(
        self, door: str, host: str | None, doors: DoorTable, claims: ClaimTable, workflows: Workflows, lane: OwnLane, adopt: Adopt
    ) -> None:
        self._door, self._host, self._doors, self._claims, self._lane = door, host, doors, claims, lane
        self._successor = Successor(doors, claims, workflows, adopt, door)

    async def open(self) -> None:
        """Raises StoreUnavailableError."""
        await self._doors.beat(self._door, self._host, self._lane.figures)
        # Earlier lives of this process are dead, whatever their leases say.
        await self._successor.clear(self._host)

    async def beat(self) -> None:
        """Renews the lease."""
        with suppress(StoreUnavailableError):
            await self._doors.beat(self._door, self._host, self._lane.figures)

    async def look(self) -> None:
        """Looks after calls that no process holds."""
        await self._successor.look()
        with suppress(StoreUnavailableError):
            await self._remember()

    async def forget(self) -> None:
        """Drops claims that no workflow holds."""
        await self._successor.forget()

    async def leave(self) -> None:
        """Leaves its claims to the other doors."""
        with suppress(StoreUnavailableError):  # the lease expires
            await self._doors.leave(self._door)

    async def _remember(self) -> None:
        """Hands on calls that were claimed here unknown to the lane: the database or the caller was lost meanwhile."""

        async def hand_on(claim: Claim) -> None:
            if claim.call is not None:
                self._lane.hand_on(Flight(claim, claim.call, is_accepted=True))

        await _with_each(partial(self._claims.held_for, self._door, _FORGOTTEN, _AT_ONCE), hand_on)


async def _with_each(page: Callable[[str], Awaitable[Sequence[Claim]]], do: Callable[[Claim], Awaitable[None]], after: str = "") -> None:
    """Page by page, each after the last call of the one before: calls that stay do not block others."""
    is_full = True
    while is_full:
        found = await page(after)
        for claim in found:
            await do(claim)
            after = claim.call_id
        is_full = len(found) == _AT_ONCE


def seen_doors(doors: DoorTable, every_s: float) -> AbstractAsyncContextManager[None]:
    """Lets a process without a door notice how long it has seen none, until the block ends."""
    return repeated(doors.look, every_s, "sight of doors", passing=(StoreUnavailableError,))


@asynccontextmanager
async def succeeding(successor: Successor, every_s: float) -> AsyncGenerator[None]:
    """Takes over from dead doors, in a process without a door, until the block ends."""
    async with repeated(successor.look, every_s, "calls of doors that are gone"), _forgetting(successor.forget):
        yield


def _forgetting(forget: Callable[[], Awaitable[None]]) -> AbstractAsyncContextManager[None]:
    """A task of its own, because Temporal may take long, and adoption must not wait."""
    return repeated(forget, _FORGET_EVERY_S, "claims of workflows that are over")


@asynccontextmanager
async def held_door(keeper: DoorKeeper, every_s: float, is_lane_open: Callable[[], bool]) -> AsyncGenerator[None]:
    """Holds the door until the block ends. Raises StoreUnavailableError at its beginning.

    A door whose lane is still open at the end does not leave: after its lease, another door ends that lane.
    """
    await keeper.open()
    try:
        # Tasks of their own, because the renewal of a lease must not wait.
        beating, looking = repeated(keeper.beat, every_s, "door lease"), repeated(keeper.look, every_s, "calls of other doors")
        async with beating, looking, _forgetting(keeper.forget):
            yield
    finally:
        if not is_lane_open():
            await keeper.leave()
