"""Settles calls: checks the output, then makes and records the result."""

from datetime import datetime

from pydantic import JsonValue

from engine.calls.effects import EFFECTS
from engine.calls.effects.ended import Ended, Places
from engine.calls.endings import as_not_sent, as_sent, faulty_step, lost_step, misfit_of
from engine.calls.lookup import ToolLookup, entry_in
from engine.calls.records import LEFT_BEHIND, record_of, record_of_refused
from engine.store.claims import Claim
from engine.store.clock import now
from toolagent.contracts.calls import ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.core.calls.results import failed, succeeded
from toolagent_service.contracts.lanes import Way
from toolagent_service.contracts.steps import AdmitRequest, CallPlan, Finished, SettleRequest


class Settlements:
    """Idempotent: all writes are by call id."""

    def __init__(self, lookup: ToolLookup, places: Places) -> None:
        self._lookup, self._places = lookup, places

    async def settle(self, request: SettleRequest, *, is_unclaimed: bool = False) -> ToolResult:
        """The recorded result of the call. `is_unclaimed`: no process ever claimed the call."""
        entry = await entry_in(self._lookup, request.plan.tool_id, request.plan.version)
        return await self.settle_with(entry, request, is_unclaimed=is_unclaimed)

    async def settle_with(
        self, entry: ToolEntry | None, request: SettleRequest, claim: Claim | None = None, *, is_unclaimed: bool = False
    ) -> ToolResult:
        """Like `settle`, with the tool; None if it was removed. Raises OvertakenError."""
        manifest = entry.manifest if entry else None
        result = await _result(request.plan, await self._with_mark(request.plan, request.outcome), manifest)
        record = await record_of(request.plan, manifest, request.workflow_id, request.run_id)
        return await settled(Ended(record, result, request.outcome.started_at is not None, claim, is_unclaimed), self._places)

    async def give_up(self, request: SettleRequest, lost: int) -> ToolResult:
        """The result of a call whose settlement was lost with its worker too often. It has no output, because that is unchecked."""
        outcome = await self._with_mark(request.plan, request.outcome)
        return await self._ended_as(request, outcome.error or lost_step("Checking and recording the tool's answer", lost, _known(outcome)))

    async def record_fault(self, request: SettleRequest, faults: int, told: str) -> ToolResult:
        """The result of a call whose settlement failed too often. It contains nothing from the tool or the parameters."""
        return await self._ended_as(request, faulty_step(faults, told, _known(request.outcome)))

    async def refuse(self, claim: Claim, call: ToolCall, error: ToolError) -> None:
        """Ends an accepted call that can never be made, or made again. Raises OvertakenError if the claim has lost the call."""
        unknown = as_sent(error.model_copy(update={"type": ErrorType.EXECUTION_ERROR}))
        end = Finished(error=unknown if await was_sent(claim.call_id, self._places) else as_not_sent(error))
        await settled_unmade(AdmitRequest(call=call, call_id=claim.call_id, workflow_id="", run_id=""), end, self._places, claim)

    async def _ended_as(self, request: SettleRequest, error: ToolError) -> ToolResult:
        plan, outcome = request.plan, request.outcome
        at, took_s = outcome.started_at or now(), outcome.execution_time
        result = failed(plan.call_id, plan.tool_id, error, at, execution_time=took_s, metadata={"way": plan.way.value})
        record = await record_of(plan, None, request.workflow_id, request.run_id)
        return await settled(Ended(record, result, outcome.error is None or outcome.started_at is not None), self._places)

    async def _with_mark(self, plan: CallPlan, outcome: Finished) -> Finished:
        """Corrects `sent` by the mark in the database: a failed attempt may not know whether an earlier one had sent the request.

        A caller that reads `sent: false` may safely call again.
        """
        if outcome.error is None or outcome.started_at is not None or plan.fast:
            return outcome
        sent = await was_sent(plan.call_id, self._places)
        return outcome.model_copy(update={"error": as_sent(outcome.error) if sent else as_not_sent(outcome.error)})


async def was_sent(call_id: str, places: Places) -> bool:
    """Whether the request may have been sent."""
    record = await places.calls.get(call_id)
    return record is not None and record.sent_at is not None


async def settled(ended: Ended, places: Places) -> ToolResult:
    """The result that stands after all effects, in their order."""
    for effect in EFFECTS:
        ended = await effect.run(ended, places)
    return ended.result


async def settled_unmade(
    request: AdmitRequest, end: Finished, places: Places, claim: Claim | None = None, way: Way | None = None
) -> ToolResult:
    """The result of a call that is not made, because it was refused or has its end from elsewhere. Raises OvertakenError."""
    metadata: dict[str, JsonValue] = {"way": way.value} if way is not None else {}
    if request.session is not None:
        metadata |= request.session.model_dump()
    unmade = end.model_copy(update={"execution_time": 0.0})
    result = _made(request.call_id, request.call.tool_id, unmade, now(), metadata)
    return await settled(Ended(record_of_refused(request), result, was_started=False, claim=claim), places)


def without_output(result: ToolResult, outcome: Finished) -> ToolResult:
    """The result without an output that the outcome contains too: a message to Temporal has it once."""
    return result.model_copy(update={"result": None}) if result.result == outcome.output else result


def _known(outcome: Finished) -> str:
    return "executed" if outcome.error is None else "unknown"


async def _result(plan: CallPlan, outcome: Finished, manifest: ToolManifest | None) -> ToolResult:
    at = outcome.started_at or now()
    metadata: dict[str, JsonValue] = {
        "version": plan.version,
        "host": outcome.host,
        "active_source": outcome.active_source,
        "fast": plan.fast,
        "way": plan.way.value,
    }
    if plan.instead_of:
        metadata |= {"instead_of": plan.instead_of, "repair": plan.repair}
    if outcome.left_behind:
        metadata[LEFT_BEHIND] = outcome.left_behind
    if plan.session is not None:
        metadata |= plan.session.model_dump()
    error, issues = outcome.error, outcome.validation_errors
    # A referenced output was checked before it was stored.
    if error is None and manifest and not outcome.is_reference and (misfit := await misfit_of(manifest, outcome.output)):
        error, issues = misfit.error, misfit.issues
    # Beside an error it would tell of an output that the error does not tell.
    if outcome.shown is not None and error is None:
        metadata["mcp"] = outcome.shown
    return _made(plan.call_id, plan.tool_id, outcome.model_copy(update={"error": error, "validation_errors": issues}), at, metadata)


def _made(call_id: str, tool_id: str, end: Finished, at: datetime, metadata: dict[str, JsonValue]) -> ToolResult:
    took_s = end.execution_time
    if end.error is not None:
        return failed(call_id, tool_id, end.error, at, validation_errors=end.validation_errors, execution_time=took_s, metadata=metadata)
    return succeeded(call_id, tool_id, end.output, at, execution_time=took_s, metadata=metadata, is_reference=end.is_reference)
