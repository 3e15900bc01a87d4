"""Deciding about a call, and where nothing stands in the way making it at once: the first and the placing step."""

from temporalio import activity

from activities.faults import Faults
from activities.heartbeats import beating, ended_from_outside
from engine.calling.attempt import MAX_TRIES
from engine.calling.fast_call import BegunCalls, FastCall
from engine.calling.turn import Interrupted
from engine.calls.admission import Admissions
from engine.calls.steps import MOST_LOST, Steps
from toolagent_service import step_names
from toolagent_service.contracts.steps import Admission, AdmitRequest, Admitted, Answered, Placement, PlaceRequest


class Admit:
    """Joins what is decided of a call with the call that is made at once."""

    def __init__(self, admissions: Admissions, fast: FastCall, begun: BegunCalls, steps: Steps) -> None:
        self._admissions, self._fast, self._begun, self._steps = admissions, fast, begun, steps
        self._faults = Faults(MAX_TRIES)

    @activity.defn(name=step_names.ADMIT)
    async def admit(self, request: AdmitRequest) -> Admission:
        """What the caller got wrong is an answer; a database that is away is raised, and tried again."""
        with self._faults.bounded(f"admit {request.call_id}"):
            # Before the database is asked, which may be away.
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
            # What may have killed its process is left to attempts, which are counted one by one. And where admission fails in the end
            # the workflow has to know that nothing was begun.
            is_first = not lost and activity.info().attempt == 1
            begins = is_first and not request.is_cancelled and self._begun.takes(admission.plan, entry, request)
            return await self._begun.begin(admission, entry, request) if begins else admission
        async with beating() as turn:
            try:
                made = await self._fast.make(admission.plan, entry, request, turn)
            except Interrupted:
                raise ended_from_outside() from None
        return admission if made is None else Answered(result=made)
