"""The client of a front door with a lane: short calls go there, all others have a workflow of their own."""

import asyncio
import uuid
from datetime import UTC, datetime

from api.client.prompt_calls import PromptCalls
from engine.calling.lane import Flight, Lane, LaneFullError
from engine.calling.lane_call import LaneMaking
from engine.calls.lookup import ToolLookup
from engine.calls.usual_durations import UsualDurations
from engine.store.calls import CallTable
from engine.store.claims import Claim, ClaimTable
from toolagent.client.failures import CallRefusedError
from toolagent.client.handles import BatchHandle, CallHandle
from toolagent.client.making import Making
from toolagent.contracts.batches import BatchEnd, ToolBatch
from toolagent.contracts.callbacks import CallbackView
from toolagent.contracts.calls import CallMode, ErrorType, ToolCall, ToolError, ToolResult
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import SideEffectScope
from toolagent.contracts.routes import ToolControl, ToolRoute
from toolagent.contracts.tasks import TaskState, TaskView
from toolagent.core.calls.idempotency import call_id_for_key, fingerprint
from toolagent.core.calls.results import failed, key_conflict
from toolagent.core.schemas import FILE_PATH, mentions_format
from toolagent_service.calls.ways import LaneMode, Way, WayFacts, way_of

__all__ = ["LaneCalls"]

_STARTED_S, _LOOK_S = 2.0, 0.05
"""How long a call that is to end may take to get the workflow that is told so, and how often it is looked for."""


class LaneCalls:
    """`calls` is the client for calls with a workflow of their own; `door` is who claims what is accepted here."""

    def __init__(
        self,
        calls: PromptCalls,
        lane: Lane,
        door: str,
        claims: ClaimTable,
        records: CallTable,
        making: LaneMaking,
        tools: ToolLookup,
        durations: UsualDurations,
        mode: LaneMode,
    ) -> None:
        self._calls, self._lane, self._door, self._claims, self._records = calls, lane, door, claims, records
        self._making, self._tools, self._durations, self._mode = making, tools, durations, mode

    @property
    def making(self) -> Making:
        return self._calls.making

    async def run(self, call: ToolCall, call_id: str | None = None) -> ToolResult:
        """Make the call and wait for its result. Raises CallRefusedError, AnswerPendingError."""
        if call.idempotency_key is not None:
            call_id = call_id_for_key(call.caller.caller_id, call.idempotency_key)
        text = call.model_dump_json(exclude_defaults=True)
        if await self._way(call, len(text)) is Way.WORKFLOW:
            return await self._calls.run(call, call_id)
        flight = Flight(call_id or f"call-{uuid.uuid4().hex}", call, fingerprint(call), len(text))
        async with self._calls.recorded(flight.call_id, call.tool_id):
            if (known := self._lane.flight(flight.call_id)) is not None:
                return await self._ended(known, flight)
            self._require_room(flight)
            if call_id is not None and (result := await self._claimed(flight)) is not None:
                return result
            return await self._ended(self._lane.take(flight), flight)

    async def start(self, call: ToolCall, call_id: str | None = None) -> CallHandle:
        return await self._calls.start(call, call_id)

    async def task(self, call_id: str, workflow_id: str | None = None) -> TaskView | None:
        """How far a call is; None when it has no workflow, and nobody has it in hand. Raises AnswerPendingError."""
        view = await self._calls.task(call_id, workflow_id)
        if view is None and (claim := await self._claims.get(call_id)) is not None and claim.call is not None:
            return TaskView(task_id=call_id, status=TaskState.RUNNING, tool_id=claim.call.tool_id)
        return view

    async def cancel(self, call_id: str, workflow_id: str | None = None) -> bool:
        """Ask a call to end; False when nobody has it. One that has ended stays as it is. Raises AnswerPendingError."""
        if (flight := self._lane.flight(call_id)) is not None and flight.moving is None:
            flight.cancel()
            return True
        if await self._calls.cancel(call_id, workflow_id):
            return True
        if await self._claims.cancel(call_id) is None:
            return False
        # Another door has it: the call ends soon, or has a workflow soon.
        for _ in range(round(_STARTED_S / _LOOK_S)):
            await asyncio.sleep(_LOOK_S)
            if await self._calls.cancel(call_id) or await self._claims.get(call_id) is None:
                break
        return True

    async def callback(self, task_id: str) -> CallbackView | None:
        return await self._calls.callback(task_id)

    async def start_batch(self, batch: ToolBatch, batch_id: str | None = None) -> BatchHandle:
        return await self._calls.start_batch(batch, batch_id)

    def batch(self, batch_id: str) -> BatchHandle:
        return self._calls.batch(batch_id)

    async def batch_end(self, batch_id: str) -> BatchEnd:
        return await self._calls.batch_end(batch_id)

    async def control(self, control: ToolControl) -> ToolRoute:
        return await self._calls.control(control)

    async def _way(self, call: ToolCall, size: int) -> Way:
        entry = await self._tools.find(call.tool_id, call.version) if self._mode is not LaneMode.OFF else None
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
                usual_s=self._durations.usual(manifest.tool_id, manifest.version),
            )
        )

    async def _claimed(self, flight: Flight) -> ToolResult | None:
        """None once the call is accepted as ours; else its result, where somebody else has it in hand or it has ended."""
        standing, claim = await self._claims.take(Claim(flight.call_id, flight.fingerprint, self._door), flight.call)
        if claim.fingerprint != flight.fingerprint:
            raise _conflict(flight)
        if standing == "ours":
            flight.claim = claim
            return None
        if standing == "settled" and (record := await self._records.get(flight.call_id)) is not None and record.result is not None:
            if record.fingerprint != flight.fingerprint:
                raise _conflict(flight)
            return record.result
        # It has a workflow of its own, or gets one here, which waits for the door that has it.
        return await self._calls.run(flight.call, flight.call_id)

    async def _ended(self, known: Flight, asked: Flight) -> ToolResult:
        if known.fingerprint != asked.fingerprint:
            raise _conflict(asked)
        result = await asyncio.shield(known.done)
        return result if result is not None else await self._calls.result(known.call_id, known.call.tool_id)

    def _require_room(self, flight: Flight) -> None:
        try:
            self._lane.require_room()
        except LaneFullError as error:
            wrong = ToolError(type=ErrorType.UNAVAILABLE, message=f"{error} Come again in a moment.", details={"sent": False})
            raise CallRefusedError(failed(flight.call_id, flight.call.tool_id, wrong, datetime.now(UTC))) from error


def _conflict(flight: Flight) -> CallRefusedError:
    return CallRefusedError(key_conflict(flight.call_id, flight.call.tool_id, datetime.now(UTC)))
