"""Calls that a door has in hand and somebody else has ended: they end here too."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Protocol

from engine.calling.lane import Flight
from engine.store.claims import ClaimTable
from engine.upkeep.rounds import repeated
from toolagent.core.failures import StoreUnavailableError

_EVERY_S = 0.1


class Flights(Protocol):
    """Those of a lane."""

    @property
    def gone_on(self) -> Sequence[Flight]:
        """Calls that are made here and have a workflow."""
        ...

    @property
    def delayed(self) -> Sequence[Flight]:
        """Calls that were accepted, and have been here for long without a workflow: most of them wait for their turn."""
        ...


class EndedElsewhere:
    """A cancel at another door is in the claims of calls; those that their workflow has ended, or somebody has taken over, have none."""

    def __init__(self, door: str, flights: Flights, claims: ClaimTable) -> None:
        self._door, self._flights, self._claims = door, flights, claims

    async def look(self) -> None:
        """Tell those that are to end."""
        with suppress(StoreUnavailableError):
            await self._look_after_gone_on()
            await self._look_after_delayed()

    async def _look_after_gone_on(self) -> None:
        claims = {flight: flight.claim for flight in self._flights.gone_on if not flight.is_cancelled}
        if not claims:
            return
        held = await self._claims.held([claim.call_id for claim in claims.values()])
        for flight, claim in claims.items():
            found = held.get(claim.call_id)
            if found is None or found.is_cancelled or not claim.is_held_as(found):
                flight.cancel()

    async def _look_after_delayed(self) -> None:
        """There may be very many; cancelled are few."""
        delayed = {flight.call_id: flight for flight in self._flights.delayed if not flight.is_cancelled}
        if not delayed:
            return
        for call_id in await self._claims.cancelled(self._door):
            if (flight := delayed.get(call_id)) is not None:
                flight.cancel()


def ending_elsewhere(door: str, flights: Flights, claims: ClaimTable) -> AbstractAsyncContextManager[None]:
    """Until the block ends."""
    return repeated(EndedElsewhere(door, flights, claims).look, _EVERY_S, "calls ended elsewhere")
