"""Giving a call a workflow of its own: one that leaves a lane, or that no process has in hand."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from engine.calling.lane import Flight
from engine.store.claims import NOBODY, WORKFLOW, Claim, ClaimTable
from toolagent.contracts.calls import ToolCall

Start = Callable[[ToolCall, str], Awaitable[bool]]
"""Starts the workflow of a call. False: the id has a workflow, perhaps of another call. Harmless to repeat. Raises LaneUnreachableError."""


class Moves:
    """Of one door. Both methods may be repeated, and raise LaneUnreachableError, StoreUnavailableError."""

    def __init__(self, claims: ClaimTable, start: Start, door: str) -> None:
        self._claims, self._start, self._door = claims, start, door

    async def move(self, flight: Flight) -> None:
        """Claim the call, so that it survives us, and start its workflow. That waits for us as long as the claim is ours."""
        if flight.is_made or not flight.is_accepted:
            await self._claim(flight, self._door if flight.is_made else NOBODY)
        else:
            await self._claims.take_over(flight.claim, NOBODY)
        if flight.is_cancelled:
            await self._claims.cancel(flight.call_id)
        # If the id is not free, admission says whose call it is.
        await self._start(flight.call, flight.call_id)

    async def adopt(self, claim: Claim) -> None:
        """Start the workflow of a call that no process has in hand, and give it the claim."""
        if claim.call is not None and await self._start(claim.call, claim.call_id):
            await self._claims.take_over(claim, WORKFLOW)

    async def _claim(self, flight: Flight, owner: str) -> None:
        """A door that was overtaken keeps its old claim: with that it cannot settle the call."""
        standing, found = await self._claims.take(replace(flight.claim, owner=owner), flight.call)
        if standing == "ours":
            flight.claim = found
        flight.is_accepted = True
        if found.is_cancelled:
            flight.cancel()
