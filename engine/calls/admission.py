"""Whether a call may be made, and how: everything that is decided before it is."""

from contextlib import suppress
from dataclasses import dataclass

from pydantic import JsonValue

from engine.calls.checks import CHECKS, CHECKS_OF_ID
from engine.calls.checks.asked import AnsweredBefore, Asked, HeldByDoor, Sources
from engine.calls.effects.ended import Ended, Places
from engine.calls.endings import Refused, lost_step
from engine.calls.lookup import entry_in
from engine.calls.memberships import Memberships
from engine.calls.placements import Placements
from engine.calls.records import record_of_refused
from engine.calls.settlement import settled
from engine.store.clock import now
from toolagent.contracts.calls import ToolError, ToolResult, ValidationIssue
from toolagent.contracts.catalog import ToolEntry
from toolagent.core.calls.idempotency import fingerprint
from toolagent.core.calls.results import failed, succeeded
from toolagent_service.calls.dispatch import timeout_of
from toolagent_service.contracts.steps import (
    Admission,
    AdmitRequest,
    Admitted,
    Answered,
    CallPlan,
    Finished,
    Held,
    OfSession,
    Placement,
    PlaceRequest,
)

_LIVES, _GRACE_S = 3, 60.0
"""How often an attempt may be made, and what it takes besides starting and calling the tool (see `workflows.options`)."""


@dataclass(frozen=True, slots=True)
class Decision:
    """`entry` is the tool of an admitted call."""

    admission: Admission
    entry: ToolEntry | None = None


class Admissions:
    """Decides about calls. Writes only the results of refused calls, by call id, so it may be repeated."""

    def __init__(self, sources: Sources, placements: Placements, places: Places, memberships: Memberships) -> None:
        self._sources, self._placements, self._places, self._memberships = sources, placements, places, memberships

    async def admit(self, request: AdmitRequest, here: Placement | None = None) -> Decision:
        """A plan for the call, or its answer: an earlier one under the same id, or why it is refused.

        `here` is where it is made, if no queue is to be chosen.
        """
        asked = Asked(
            request.call_id, request.call, fingerprint(request.call), request.call.params, is_new=request.is_new, is_stop=request.is_stop
        )
        try:
            for check in CHECKS if request.instead is None else CHECKS_OF_ID:
                asked = await check.run(asked, self._sources)
            if request.instead is not None:
                return Decision(Answered(result=await self._told(request, request.instead)))
            if request.alone and (part := await self._memberships.of(asked, self._longest(asked))) is not None:
                return Decision(part)
            placement = here or await self._placements.choose(asked.found, prefer=request.prefer)
        except HeldByDoor as held:
            return Decision(Held(door=held.door))
        except AnsweredBefore as before:
            return Decision(Answered(result=before.result))
        except Refused as refusal:
            return Decision(Answered(result=await self._refused(request, refusal.error, refusal.issues)))
        return Decision(Admitted(plan=self._plan(asked, placement, request.session)), asked.found)

    async def give_up(self, request: AdmitRequest, lost: int) -> Answered:
        """The answer of a call whose admission was lost with its worker too often. A tool without effects may have been called in it."""
        error = lost_step("Admitting the call", lost, "unknown")
        return Answered(result=await self._refused(request, error))

    async def place(self, request: PlaceRequest) -> Placement:
        """Where to wait now: on, where it is, when the tool is gone or all hosts drain."""
        entry = await entry_in(self._sources.lookup, request.plan.tool_id, request.plan.version)
        with suppress(Refused):
            if entry is not None:
                return await self._placements.choose(entry, request.plan.placement.host)
        return request.plan.placement

    async def _refused(self, request: AdmitRequest, error: ToolError, issues: tuple[ValidationIssue, ...] = ()) -> ToolResult:
        return await self._told(request, Finished(error=error, validation_errors=issues))

    async def _told(self, request: AdmitRequest, end: Finished) -> ToolResult:
        """The result of a call that is not made."""
        metadata: dict[str, JsonValue] = {**request.session.model_dump()} if request.session else {}
        call_id, tool_id, error = request.call_id, request.call.tool_id, end.error
        if error is not None:
            result = failed(call_id, tool_id, error, now(), validation_errors=end.validation_errors, metadata=metadata)
        else:
            result = succeeded(call_id, tool_id, end.output, now(), execution_time=0.0, metadata=metadata, is_reference=end.is_reference)
        return await settled(Ended(record_of_refused(request), result, was_started=False), self._places)

    def _longest(self, asked: Asked) -> float:
        limits = self._sources.limits
        return limits.queue_timeout_s + _LIVES * (limits.start_timeout_s + timeout_of(asked.call, asked.manifest) + _GRACE_S)

    def _plan(self, asked: Asked, placement: Placement, session: OfSession | None) -> CallPlan:
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
            session=session,
            instead_of=asked.instead_of,
            repair=asked.repair,
        )
