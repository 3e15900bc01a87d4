"""Ends calls in the lane of a door that were ended elsewhere."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Protocol

from engine.calling.lane import Flight
from engine.store.claims import ClaimTable
from engine.upkeep.rounds import repeated
from toolagent.core.failures import StoreUnavailableError

_EVERY_S = 0.1


class Flights(Protocol):
    """The flights of a lane."""

    @property
    def gone_on(self) -> Sequence[Flight]:
        """Calls that run here and have a workflow."""
        ...

    @property
    def delayed(self) -> Sequence[Flight]:
        """Accepted calls that have been here for long without a workflow; most of them wait for their turn."""
        ...


class EndedElsewhere:
    """Reads claims: another door marks a cancelled call there, and a call that was settled or taken over has lost its claim."""

    def __init__(self, door: str, flights: Flights, claims: ClaimTable) -> None:
        self._door, self._flights, self._claims = door, flights, claims

    async def look(self) -> None:
        """Cancels the flights of ended calls."""
        with suppress(StoreUnavailableError):
            await self._look_at_moved()
            await self._look_at_delayed()

    async def _look_at_moved(self) -> None:
        claims = {flight: flight.claim for flight in self._flights.gone_on if not flight.is_cancelled}
        if not claims:
            return
        held = await self._claims.held([claim.call_id for claim in claims.values()])
        for flight, claim in claims.items():
            found = held.get(claim.call_id)
            if found is None or found.is_cancelled or not claim.is_held_as(found):
                flight.cancel()

    async def _look_at_delayed(self) -> None:
        """Reads the cancelled claims, which are few, while the delayed calls may be many."""
        delayed = {flight.call_id: flight for flight in self._flights.delayed if not flight.is_cancelled}
        for call_id in await self._claims.cancelled(self._door) if delayed else ():
            if (flight := delayed.get(call_id)) is not None:
                flight.cancel()


def ending_elsewhere(door: str, flights: Flights, claims: ClaimTable) -> AbstractAsyncContextManager[None]:
    """Looks at intervals until the block ends."""
    return repeated(EndedElsewhere(door, flights, claims).look, _EVERY_S, "calls ended elsewhere")
