"""Deciding about a call, and where nothing stands in the way making it at once: the first and the placing step."""

from temporalio import activity

from activities.attempt import MAX_TRIES
from activities.call_tool import CallTool
from activities.faults import Faults
from engine.calls.admission import Admissions
from engine.calls.settlement import Settlements
from engine.calls.steps import MOST_LOST, Steps
from engine.runtimes.supervisor import Supervisor
from toolagent.client import names
from toolagent.contracts.steps import (
    Admission,
    AdmitRequest,
    Admitted,
    Answered,
    CallRequest,
    Finished,
    Placement,
    PlaceRequest,
    SettleRequest,
)

__all__ = ["Admit"]


class Admit:
    """Joins what the registry says of a call with what runs on this host."""

    def __init__(self, admissions: Admissions, supervisor: Supervisor, call: CallTool, settlements: Settlements, steps: Steps) -> None:
        self._admissions = admissions
        self._supervisor = supervisor
        self._call = call
        self._settlements = settlements
        self._steps = steps
        self._faults = Faults(MAX_TRIES)

    @activity.defn(name=names.ADMIT)
    async def admit(self, request: AdmitRequest) -> Admission:
        """What the caller got wrong is an answer; a database that is away is raised, and tried again.

        A call on the fast path is made and settled here: it has no effects and is short, so that all of this may happen again.
        """
        with self._faults.bounded(f"admit {request.call_id}"):
            async with self._steps.under_way("admit", request.call_id) as lost:
                return await (self._admissions.give_up(request, lost) if lost >= MOST_LOST else self._admit(request))

    @activity.defn(name=names.PLACE)
    async def place(self, request: PlaceRequest) -> Placement:
        with self._faults.bounded(f"place {request.plan.call_id}"):
            return await self._admissions.place(request)

    async def _admit(self, request: AdmitRequest) -> Admission:
        decision = await self._admissions.admit(request, self._supervisor.is_ready)
        admission, entry = decision.admission, decision.entry
        if not isinstance(admission, Admitted) or not admission.plan.fast or entry is None:
            return admission
        outcome = await self._call.make(CallRequest(plan=admission.plan, only_if_running=True), entry)
        if not isinstance(outcome, Finished):
            return Admitted(plan=admission.plan.model_copy(update={"fast": False}))
        settling = SettleRequest(plan=admission.plan, outcome=outcome, workflow_id=request.workflow_id, run_id=request.run_id)
        return Answered(result=await self._settlements.settle_with(entry, settling))
