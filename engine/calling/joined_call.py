"""Joins a workflow to a call that the lane of a front door makes."""

import asyncio

from engine.calling.lane import Flight, Lane
from engine.calling.turn import Interrupted, Turn
from engine.store.claims import ClaimTable
from toolagent_service.contracts.steps import JoinRequest


class JoinedCalls:
    """Waits for calls that this front door makes, for their workflows."""

    def __init__(self, lane: Lane, claims: ClaimTable, door: str) -> None:
        self._lane, self._claims, self._door = lane, claims, door

    async def join(self, request: JoinRequest, turn: Turn) -> None:
        """Returns when the call has its result, or was given away. Raises Interrupted, StoreUnavailableError."""
        flight = self._lane.flight(request.call_id)
        if flight is not None and await self._ended(flight, turn, is_cancelled=request.is_cancelled):
            return
        await self._claims.give_away(request.call_id, self._door)

    async def _ended(self, flight: Flight, turn: Turn, *, is_cancelled: bool) -> bool:
        """Waits for the end of the flight. Returns whether it has a result."""
        if is_cancelled:
            flight.cancel()
        try:
            return await asyncio.shield(flight.done) is not None
        except asyncio.CancelledError:
            if not turn.is_call_cancelled:
                raise Interrupted from None
            flight.cancel()
            return await asyncio.shield(flight.done) is not None
