"""Making a call that waited in its queue: the middle step, as an activity."""

from datetime import timedelta

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.heartbeats import beating, ended_from_outside, is_stopped
from engine.calling.fast_call import BegunCalls
from engine.calling.intake import Intake
from engine.calling.queued_call import PromptSettlement, QueuedCall
from engine.calling.turn import Again, Interrupted
from toolagent.client import names
from toolagent_service import step_names
from toolagent_service.contracts.steps import CallRequest, Finished

_EXPECTED = ApplicationErrorCategory.BENIGN
"""Temporal logs and counts these as what they are: part of the plan."""

_ELSEWHERE = timedelta(seconds=0.1)
_TYPES = {"no_slot": names.NO_SLOT, "connection_lost": step_names.TOOL_CONNECTION_LOST}


class CallTool:
    """One attempt of Temporal's is one of the call's."""

    def __init__(self, call: QueuedCall, begun: BegunCalls, settlement: PromptSettlement, intake: Intake) -> None:
        self._call, self._begun, self._settlement, self._intake = call, begun, settlement, intake

    @activity.defn(name=step_names.CALL)
    async def call_tool(self, request: CallRequest) -> Finished:
        """What the tool or the caller got wrong is returned; what may be tried again is raised."""
        async with beating(request.lost, request.told) as turn:
            if request.plan.placement.host is None and not self._intake.is_open:
                turn.only_waited()
                raise _for_others()
            try:
                outcome = await self._begun.joined(request, turn)
                if outcome is None:
                    async with self._begun.slot(request.plan, turn):
                        outcome = await self._call.attempt(request.plan, turn)
                return await self._settlement.settled(request, outcome)
            except Again as again:
                raise ApplicationError(str(again), type=_TYPES[again.kind], category=_EXPECTED, next_retry_delay=again.pause) from again
            except Interrupted:
                if is_stopped():
                    turn.only_waited()
                raise ended_from_outside() from None


def _for_others() -> ApplicationError:
    """It was on its way here when the host began to drain; any host may take it."""
    return ApplicationError("The host drains.", type=step_names.ATTEMPT_ENDED, category=_EXPECTED, next_retry_delay=_ELSEWHERE)
