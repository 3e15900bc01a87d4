"""Waits for a call that the lane of a front door makes, in the process of that door."""

from temporalio import activity

from activities.heartbeats import beating
from engine.calling.joined_call import JoinedCalls
from toolagent_service import step_names
from toolagent_service.contracts.steps import JoinRequest


class JoinCall:
    def __init__(self, calls: JoinedCalls) -> None:
        self._calls = calls

    @activity.defn(name=step_names.JOIN)
    async def join_call(self, request: JoinRequest) -> None:
        """When it is cancelled, it ends the call, and waits for its end."""
        async with beating() as turn:
            await self._calls.join(request, turn)
