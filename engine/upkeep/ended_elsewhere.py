"""Calls that a door makes and somebody else has ended: they end here too."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress

from engine.calling.lane import Flight
from engine.store.claims import ClaimTable
from engine.upkeep.rounds import repeated
from toolagent.core.failures import StoreUnavailableError

_EVERY_S = 0.1


class EndedElsewhere:
    """Looks after the calls of a lane that go on with a workflow. A cancel at another door is in their claims; ended by their workflow,
    or taken over, they have none."""

    def __init__(self, flights: Callable[[], Sequence[Flight]], claims: ClaimTable) -> None:
        self._flights, self._claims = flights, claims

    async def look(self) -> None:
        """Tell those that are to end."""
        claims = {flight: flight.claim for flight in self._flights() if not flight.is_cancelled}
        if not claims:
            return
        with suppress(StoreUnavailableError):
            held = await self._claims.held([claim.call_id for claim in claims.values()])
            for flight, claim in claims.items():
                found = held.get(claim.call_id)
                if found is None or found.is_cancelled or not claim.is_held_as(found):
                    flight.cancel()


def ending_elsewhere(flights: Callable[[], Sequence[Flight]], claims: ClaimTable) -> AbstractAsyncContextManager[None]:
    """Until the block ends."""
    return repeated(EndedElsewhere(flights, claims).look, _EVERY_S, "calls ended elsewhere")
