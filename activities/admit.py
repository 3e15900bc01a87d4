"""Admits a call, and makes it at once if it can be made here; chooses its queue anew."""

from temporalio import activity

from activities.faults import Faults
from activities.heartbeats import beating
from engine.calling.attempt import MAX_TRIES
from engine.calling.fast_call import BegunCalls, FastCall
from engine.calls.admission import Admissions
from engine.calls.steps import MOST_LOST, Steps
from toolagent_service import step_names
from toolagent_service.contracts.steps import Admission, AdmitRequest, Admitted, Answered, Placement, PlaceRequest


class Admit:
    """Joins admission with the calls that are made or begun where they are admitted."""

    def __init__(self, admissions: Admissions, fast: FastCall, begun: BegunCalls, steps: Steps) -> None:
        self._admissions, self._fast, self._begun, self._steps = admissions, fast, begun, steps
        self._faults = Faults(MAX_TRIES)

    @activity.defn(name=step_names.ADMIT)
    async def admit(self, request: AdmitRequest) -> Admission:
        """Errors of the caller are an answer. An unreachable database is raised, and Temporal retries."""
        with self._faults.bounded(f"admit {request.call_id}"):
            # First, because the database may be unreachable.
            if (known := await self._begun.known(request)) is not None:
                return known
            async with self._steps.under_way("admit", request.call_id) as lost:
                return await (self._admissions.give_up(request, lost) if lost >= MOST_LOST else self._admit(request, lost))

    @activity.defn(name=step_names.PLACE)
    async def place(self, request: PlaceRequest) -> Placement:
        with self._faults.bounded(f"place {request.plan.call_id}"):
            return await self._admissions.place(request)

    async def _admit(self, request: AdmitRequest, lost: int) -> Admission:
        decision = await self._admissions.admit(request)
        admission, entry = decision.admission, decision.entry
        if not isinstance(admission, Admitted) or entry is None:
            return admission
        if not self._fast.takes(admission.plan, entry):
            # A call that may have killed its process is left to attempts, which are counted one by one. And the workflow must know
            # that nothing was begun if admission fails in the end.
            is_first = not lost and activity.info().attempt == 1
            begins = is_first and not request.is_cancelled and self._begun.takes(admission.plan, entry, request)
            return await self._begun.begin(admission, entry, request) if begins else admission
        async with beating() as turn:
            made = await self._fast.make(admission.plan, entry, request, turn)
        return admission if made is None else Answered(result=made)
