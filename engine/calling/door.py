"""A front door: which calls take its lane, which of them are accepted, and what becomes of those that somebody else has."""

import asyncio
import uuid
from datetime import UTC, datetime

from pydantic import JsonValue

from engine.calling.lane import Flight, Lane, LaneFullError
from engine.calling.lane_call import LaneMaking
from engine.calls.lookup import ToolLookup
from engine.calls.usual_durations import UsualDurations
from engine.store.calls import CallTable
from engine.store.claims import Claim, ClaimTable
from toolagent.contracts.calls import CallMode, ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import SideEffectScope
from toolagent.core.calls.idempotency import call_id_for_key, fingerprint
from toolagent.core.calls.results import failed, key_conflict
from toolagent.core.failures import StoreUnavailableError
from toolagent.core.schemas import FILE_PATH, mentions_format
from toolagent_service.calls.lanes import Elsewhere, LanePendingError, LaneRefusedError
from toolagent_service.calls.ways import WayFacts, way_of
from toolagent_service.contracts.lanes import LaneMode, Way

_PATIENCE_S = 5.0
"""How long a caller waits for a lane that stands still, because Temporal is away."""


class DoorTables:
    """Where a door looks things up."""

    def __init__(self, claims: ClaimTable, records: CallTable, tools: ToolLookup, durations: UsualDurations) -> None:
        self.claims, self.records, self.tools, self.durations = claims, records, tools, durations


class Door:
    """`name` is who claims what is accepted here."""

    def __init__(self, name: str, lane: Lane, making: LaneMaking, tables: DoorTables, mode: LaneMode) -> None:
        self._name, self._lane, self._making, self._tables, self._mode = name, lane, making, tables, mode

    async def make(self, call: ToolCall, call_id: str | None = None) -> ToolResult | Elsewhere:
        """The call's result, or by whom it is had. Raises LaneRefusedError, LanePendingError."""
        if call.idempotency_key is not None:
            call_id = call_id_for_key(call.caller.caller_id, call.idempotency_key)
        try:
            return await self._make(call, call_id)
        except StoreUnavailableError:
            return Elsewhere(call_id)  # a workflow can wait for the database

    async def _make(self, call: ToolCall, call_id: str | None) -> ToolResult | Elsewhere:
        size = len(call.model_dump_json(exclude_defaults=True)) if self._mode is not LaneMode.OFF else 0
        if await self._way(call, size) is Way.WORKFLOW:
            return Elsewhere(call_id)
        flight = Flight(call_id or f"call-{uuid.uuid4().hex}", call, fingerprint(call), size)
        if (known := self._lane.flight(flight.call_id)) is not None:
            return await self._ended(known, flight)
        self._require_room(flight)
        if call_id is not None and (answer := await self._claimed(flight)) is not None:
            return answer
        return await self._ended(self._lane.take(flight), flight)

    async def tool_in_hand(self, call_id: str) -> str | None:
        """The tool of a call that some door has accepted and that has not ended. Raises StoreUnavailableError."""
        claim = await self._tables.claims.get(call_id)
        return claim.call.tool_id if claim is not None and claim.call is not None else None

    def cancel(self, call_id: str) -> bool:
        """Have a call end that is made here; False when none is, or it has a workflow by now, which is to be told."""
        flight = self._lane.flight(call_id)
        if flight is None or flight.is_moved:
            return False
        flight.cancel()
        return True

    async def cancel_elsewhere(self, call_id: str) -> bool:
        """Write down that a call is to end; False when no door has it. Raises StoreUnavailableError."""
        return await self._tables.claims.cancel(call_id) is not None

    async def _way(self, call: ToolCall, size: int) -> Way:
        entry = await self._tables.tools.find(call.tool_id, call.version) if self._mode is not LaneMode.OFF else None
        if not isinstance(entry, ToolEntry):
            return Way.WORKFLOW
        manifest = entry.manifest
        return way_of(
            WayFacts(
                lanes=self._mode,
                is_waited_for=call.mode is CallMode.SYNC,
                streams=call.stream,
                names_files=mentions_format(manifest.input_schema, FILE_PATH) or mentions_format(manifest.output_schema, FILE_PATH),
                params_bytes=size,
                is_ready=self._making.is_ready(entry),
                has_effects=manifest.side_effect_scope is not SideEffectScope.NONE,
                quick_s=self._tables.durations.quick(manifest.tool_id, manifest.version),
            )
        )

    async def _claimed(self, flight: Flight) -> ToolResult | Elsewhere | None:
        """None once the call is accepted as ours."""
        standing, claim = await self._tables.claims.take(Claim(flight.call_id, flight.fingerprint, self._name), flight.call)
        if claim.fingerprint != flight.fingerprint:
            raise _conflict(flight)
        if standing == "ours":
            flight.claim = claim
            return None
        if standing == "settled" and (record := await self._tables.records.get(flight.call_id)) is not None and record.result is not None:
            if record.fingerprint != flight.fingerprint:
                raise _conflict(flight)
            return record.result
        # It has a workflow of its own, or gets one, which waits for the door that has it.
        return Elsewhere(flight.call_id)

    async def _ended(self, known: Flight, asked: Flight) -> ToolResult | Elsewhere:
        if known.fingerprint != asked.fingerprint:
            raise _conflict(asked)
        while not known.done.done():
            await asyncio.wait((known.done,), timeout=1.0)
            if not known.done.done() and not known.is_made and self._lane.silent_s >= _PATIENCE_S:
                self._require_answer(known)
        return known.done.result() or Elsewhere(known.call_id, has_begun=True)

    def _require_answer(self, flight: Flight) -> None:
        """Have the caller of a call that stands still ask again later: one that was not accepted is taken back."""
        if flight.claim is not None:
            raise LanePendingError(_unavailable(flight, "Temporal is away. The call goes on when it is back; ask for it by its id."))
        if self._lane.leave(flight):
            raise LaneRefusedError(_unavailable(flight, "Temporal is away; ask again in a moment.", sent=False))

    def _require_room(self, flight: Flight) -> None:
        try:
            self._lane.require_room()
        except LaneFullError as error:
            raise LaneRefusedError(_unavailable(flight, f"{error} Come again in a moment.", sent=False)) from error


def _unavailable(flight: Flight, message: str, **details: JsonValue) -> ToolResult:
    wrong = ToolError(type=ErrorType.UNAVAILABLE, message=message, details=details)
    return failed(flight.call_id, flight.call.tool_id, wrong, datetime.now(UTC))


def _conflict(flight: Flight) -> LaneRefusedError:
    return LaneRefusedError(key_conflict(flight.call_id, flight.call.tool_id, datetime.now(UTC)))
