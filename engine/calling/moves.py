"""Moves calls to their own workflow: calls that leave a lane, or that no process holds."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from engine.calling.lane import Flight
from engine.store.calls import OvertakenError
from engine.store.claims import NOBODY, WORKFLOW, Claim, ClaimTable
from toolagent.contracts.calls import ToolCall, ToolError
from toolagent_service.calls.lanes import LaneRefusedError

Start = Callable[[ToolCall, str], Awaitable[bool]]
"""Starts the workflow of a call. False: the id has a workflow, perhaps of another call. Idempotent. Raises LaneUnreachableError,
LaneRefusedError."""

Refuse = Callable[[Claim, ToolCall, ToolError], Awaitable[None]]
"""Ends a call that Temporal refuses for good. Raises OvertakenError, StoreUnavailableError."""


class Moves:
    """The moves of one door. Both methods are idempotent, and raise LaneUnreachableError, StoreUnavailableError."""

    def __init__(self, claims: ClaimTable, start: Start, refuse: Refuse, door: str) -> None:
        self._claims, self._start, self._refuse, self._door = claims, start, refuse, door

    async def move(self, flight: Flight) -> None:
        """Claims the call, so that it survives this process, and starts its workflow, which waits as long as this door has the claim."""
        if flight.is_made or not flight.is_accepted:
            await self._claim(flight, self._door if flight.is_made else NOBODY)
        else:
            await self._claims.take_over(flight.claim, NOBODY)
        if flight.is_cancelled:
            await self._claims.cancel(flight.call_id)
        # If the id is taken, admission reports whose call it is. If Temporal refuses the call for good, its adoption reports that.
        with suppress(LaneRefusedError):
            await self._start(flight.call, flight.call_id)

    async def adopt(self, claim: Claim) -> None:
        """Starts the workflow of a call that no process holds, and gives it the claim. Ends a call that Temporal refuses for good."""
        if claim.call is None:
            return
        try:
            if await self._start(claim.call, claim.call_id):
                await self._claims.take_over(claim, WORKFLOW)
        except LaneRefusedError as refused:
            # Take it over first: then no process that wakes up can send it.
            if refused.result.error is not None and await self._claims.take_over(claim, NOBODY):
                with suppress(OvertakenError):
                    await self._refuse(replace(claim, owner=NOBODY, number=claim.number + 1), claim.call, refused.result.error)

    async def _claim(self, flight: Flight, owner: str) -> None:
        """A door that was overtaken keeps its old claim, with which it cannot settle the call."""
        standing, found = await self._claims.take(replace(flight.claim, owner=owner, is_cancelled=flight.is_cancelled), flight.call)
        if standing == "ours":
            flight.claim = found
        flight.is_accepted = True
        if found.is_cancelled:
            flight.cancel()
