"""Waiting for a call that the lane of a front door makes, in the process of that door."""

from temporalio import activity

from activities.heartbeats import beating, ended_from_outside
from engine.calling.joined_call import JoinedCalls
from engine.calling.turn import Interrupted
from toolagent_service import step_names
from toolagent_service.contracts.steps import JoinRequest


class JoinCall:
    def __init__(self, calls: JoinedCalls) -> None:
        self._calls = calls

    @activity.defn(name=step_names.JOIN)
    async def join_call(self, request: JoinRequest) -> None:
        """Cancelled, it tells the call to end, and waits for that."""
        async with beating() as turn:
            try:
                await self._calls.join(request, turn)
            except Interrupted:
                raise ended_from_outside() from None
