"""Whether a call may be made, and how: everything that is decided before it is."""

from dataclasses import dataclass

from engine.calls.checks import CHECKS
from engine.calls.checks.asked import AnsweredBefore, Asked, HeldByDoor, Sources
from engine.calls.effects.ended import Ended, Places
from engine.calls.endings import Refused, lost_step
from engine.calls.lookup import entry_in
from engine.calls.placements import Placements
from engine.calls.records import record_of_refused
from engine.calls.settlement import settled
from engine.store.clock import now
from toolagent.contracts.calls import ToolError, ToolResult, ValidationIssue
from toolagent.contracts.catalog import ToolEntry
from toolagent.core.calls.idempotency import fingerprint
from toolagent.core.calls.results import failed
from toolagent_service.calls.dispatch import timeout_of
from toolagent_service.contracts.steps import Admission, AdmitRequest, Admitted, Answered, CallPlan, Held, Placement, PlaceRequest


@dataclass(frozen=True, slots=True)
class Decision:
    """`entry` is the tool of an admitted call."""

    admission: Admission
    entry: ToolEntry | None = None


class Admissions:
    """Decides about calls. Writes only the results of refused calls, by call id, so it may be repeated."""

    def __init__(self, sources: Sources, placements: Placements, places: Places) -> None:
        self._sources, self._placements, self._places = sources, placements, places

    async def admit(self, request: AdmitRequest, here: Placement | None = None) -> Decision:
        """A plan for the call, or its answer: an earlier one under the same id, or why it is refused.

        `here` is where it is made, if no queue is to be chosen.
        """
        asked = Asked(request.call_id, request.call, fingerprint(request.call), request.call.params, is_new=request.is_new)
        try:
            for check in CHECKS:
                asked = await check.run(asked, self._sources)
        except HeldByDoor as held:
            return Decision(Held(door=held.door))
        except AnsweredBefore as before:
            return Decision(Answered(result=before.result))
        except Refused as refusal:
            return Decision(Answered(result=await self._refused(request, refusal.error, refusal.issues)))
        placement = here or await self._placements.choose(asked.found, prefer=request.prefer)
        return Decision(Admitted(plan=self._plan(asked, placement)), asked.found)

    async def give_up(self, request: AdmitRequest, lost: int) -> Answered:
        """The answer of a call whose admission was lost with its worker too often. A tool without effects may have been called in it."""
        error = lost_step("Admitting the call", lost, "unknown")
        return Answered(result=await self._refused(request, error))

    async def place(self, request: PlaceRequest) -> Placement:
        """Where to wait now."""
        entry = await entry_in(self._sources.lookup, request.plan.tool_id, request.plan.version)
        return await self._placements.choose(entry, request.plan.placement.host) if entry else request.plan.placement

    async def _refused(self, request: AdmitRequest, error: ToolError, issues: tuple[ValidationIssue, ...] = ()) -> ToolResult:
        result = failed(request.call_id, request.call.tool_id, error, now(), validation_errors=issues)
        return await settled(Ended(record_of_refused(request), result, was_started=False), self._places)

    def _plan(self, asked: Asked, placement: Placement) -> CallPlan:
        manifest, limits = asked.manifest, self._sources.limits
        return CallPlan(
            call_id=asked.call_id,
            tool_id=manifest.tool_id,
            version=manifest.version,
            params=asked.params,
            fingerprint=asked.fingerprint,
            placement=placement,
            fast=False,
            repeatable=manifest.repeatable,
            timeout_s=timeout_of(asked.call, manifest),
            start_timeout_s=limits.start_timeout_s,
            queue_timeout_s=limits.queue_timeout_s,
            priority=asked.call.priority,
            caller=asked.call.caller,
            instead_of=asked.instead_of,
            repair=asked.repair,
        )
