"""Makes a call that waited in its queue."""

from datetime import timedelta

from temporalio import activity

from activities.failures import expected
from activities.heartbeats import beating
from engine.calling.fast_call import BegunCalls
from engine.calling.intake import Intake
from engine.calling.queued_call import PromptSettlement, QueuedCall
from engine.calling.turn import Again
from toolagent.client import names
from toolagent_service import step_names
from toolagent_service.contracts.steps import CallRequest, Finished

_ELSEWHERE = timedelta(seconds=0.1)
_TYPES = {"no_slot": names.NO_SLOT, "connection_lost": step_names.TOOL_CONNECTION_LOST}


class CallTool:
    """Each attempt of the activity is one attempt at the call."""

    def __init__(self, call: QueuedCall, begun: BegunCalls, settlement: PromptSettlement, intake: Intake) -> None:
        self._call, self._begun, self._settlement, self._intake = call, begun, settlement, intake

    @activity.defn(name=step_names.CALL)
    async def call_tool(self, request: CallRequest) -> Finished:
        """Returns errors of the tool and of the caller. Raises what another attempt may mend."""
        async with beating(request.lost, request.told) as turn:
            if request.plan.placement.host is None and not self._intake.is_open:
                turn.only_waited()
                # The host began to drain while the call was on its way here; any other host may take it.
                raise expected("The host drains.", step_names.ATTEMPT_ENDED, pause=_ELSEWHERE)
            try:
                outcome = await self._begun.joined(request, turn)
                if outcome is None:
                    async with self._begun.slot(request.plan, turn):
                        outcome = await self._call.attempt(request.plan, turn)
                return await self._settlement.settled(request, outcome)
            except Again as again:
                raise expected(str(again), _TYPES[again.kind], pause=again.pause) from again
