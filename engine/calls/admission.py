"""Admission of calls: whether a call may be made, and where."""

from contextlib import suppress
from dataclasses import dataclass

from engine.calls.checks import CHECKS, CHECKS_OF_ID
from engine.calls.checks.asked import AnsweredBefore, Asked, HeldByDoor, Sources
from engine.calls.effects.ended import Places
from engine.calls.endings import Refused, lost_step, refused_when_sent
from engine.calls.lookup import entry_in
from engine.calls.memberships import Memberships
from engine.calls.placements import OwnCall, Placements
from engine.calls.settlement import settled_unmade, was_sent
from toolagent.contracts.catalog import ToolEntry
from toolagent.core.calls.idempotency import fingerprint
from toolagent_service.contracts.lanes import Way
from toolagent_service.contracts.steps import Admission, AdmitRequest, Admitted, Answered, Finished, Held, Placement, PlaceRequest


@dataclass(frozen=True, slots=True)
class Decision:
    """`entry` is the tool of an admitted call."""

    admission: Admission
    entry: ToolEntry | None = None


class Admissions:
    """Decides about calls. It writes only results of refused calls, by call id, so it is idempotent."""

    def __init__(self, sources: Sources, placements: Placements, places: Places, memberships: Memberships) -> None:
        self._sources, self._placements, self._places, self._memberships = sources, placements, places, memberships

    async def admit(self, request: AdmitRequest, here: OwnCall | None = None) -> Decision:
        """A plan for the call, or its answer: an earlier one under the same id, or a refusal.

        `here`: the call is in a lane, without a queue. Raises OvertakenError if the call is refused, and another process has taken it over.
        """
        known = here.claim.fingerprint if here is not None else fingerprint(request.call)
        asked = Asked.by(request, known)
        way = Way.WORKFLOW if here is None else Way.LANE
        try:
            for check in CHECKS if request.instead is None else CHECKS_OF_ID:
                asked = await check.run(asked, self._sources)
            if request.instead is not None:
                return Decision(Answered(result=await settled_unmade(request, request.instead, self._places, way=way)))
            if request.alone and (part := await self._memberships.of(asked, asked.longest_s(self._sources.limits))) is not None:
                return Decision(part)
            placement = here.placement if here is not None else await self._placements.choose(asked.found, prefer=request.prefer)
        except HeldByDoor as held:
            return Decision(Held(door=held.door))
        except AnsweredBefore as before:
            return Decision(Answered(result=before.result))
        except Refused as refusal:
            claim = here.claim if here is not None and here.is_accepted else None
            # A lane sends only accepted calls.
            is_sent = (here is None or claim is not None) and await was_sent(request.call_id, self._places)
            error = refused_when_sent(refusal.error) if is_sent else refusal.error
            end = Finished(error=error, validation_errors=refusal.issues)
            return Decision(Answered(result=await settled_unmade(request, end, self._places, claim, way)))
        return Decision(Admitted(plan=asked.plan(self._sources.limits, placement, request.session, way)), asked.found)

    async def give_up(self, request: AdmitRequest, lost: int) -> Answered:
        """The answer if workers died in the admission too often. A tool without effects may have been called."""
        end = Finished(error=lost_step("Admitting the call", lost, "unknown"))
        return Answered(result=await settled_unmade(request, end, self._places, way=Way.WORKFLOW))

    async def place(self, request: PlaceRequest) -> Placement:
        """A new placement; the old one if the tool is gone or all hosts drain."""
        entry = await entry_in(self._sources.lookup, request.plan.tool_id, request.plan.version)
        with suppress(Refused):
            if entry is not None:
                return await self._placements.choose(entry, request.plan.placement.host, request.prefer)
        return request.plan.placement
