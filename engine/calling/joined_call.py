"""Calls that were given to a workflow while a front door had them in hand: they end there."""

import asyncio

from engine.calling.lane import Lane
from engine.calling.queued_call import QueuedCall
from engine.calling.turn import Interrupted, Turn
from toolagent_service.contracts.steps import CallPlan, Finished


class JoinedCall:
    """As a QueuedCall, for calls that may be under way in this very process."""

    def __init__(self, lane: Lane, queued: QueuedCall) -> None:
        self._lane, self._queued = lane, queued

    async def attempt(self, plan: CallPlan, turn: Turn) -> Finished:
        """What was recorded stands, whatever is returned then. Raises as QueuedCall, and CancelledError."""
        flight = self._lane.flight(plan.call_id)
        if flight is None:
            return await self._queued.attempt(plan, turn)
        try:
            result = await asyncio.shield(flight.done)
        except asyncio.CancelledError:
            if not turn.is_call_cancelled:
                raise Interrupted from None
            flight.cancel()
            if await flight.done is None:
                raise  # it was not made
            return Finished()
        return Finished() if result is not None else await self._queued.attempt(plan, turn)
