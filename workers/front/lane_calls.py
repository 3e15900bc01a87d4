"""The client of a front door with a lane: short calls go there, all others have a workflow of their own."""

import uuid

from engine.calling.lane import Flight, Lane
from engine.calls.lookup import ToolLookup
from engine.calls.usual_durations import UsualDurations
from toolagent.contracts.calls import CallMode, ToolCall, ToolResult
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import SideEffectScope
from toolagent.core.calls.idempotency import fingerprint
from toolagent.core.schemas import FILE_PATH, mentions_format
from toolagent_service.calls.ways import LaneMode, Way, WayFacts, way_of
from workers.front.prompt_calls import PromptCalls

__all__ = ["LaneDoor"]


class LaneDoor:
    def __init__(self, calls: PromptCalls, lane: Lane, tools: ToolLookup, is_ready, durations: UsualDurations, mode: LaneMode) -> None:
        self._calls, self._lane, self._tools, self._is_ready, self._durations, self._mode = calls, lane, tools, is_ready, durations, mode

    def __getattr__(self, name):
        return getattr(self._calls, name)

    async def run(self, call: ToolCall, call_id: str | None = None) -> ToolResult:
        if call_id is not None or call.idempotency_key is not None or await self._way(call) is Way.WORKFLOW:
            return await self._calls.run(call, call_id)
        self._lane.require_room()
        own = f"call-{uuid.uuid4().hex}"
        flight = self._lane.take(Flight(own, call, fingerprint(call), 200))
        result = await flight.done
        return result if result is not None else await self._calls.result(own, call.tool_id)

    async def _way(self, call: ToolCall) -> Way:
        entry = await self._tools.find(call.tool_id, call.version)
        if not isinstance(entry, ToolEntry):
            return Way.WORKFLOW
        return way_of(
            WayFacts(
                lanes=self._mode,
                is_waited_for=call.mode is CallMode.SYNC,
                streams=call.stream,
                names_files=mentions_format(entry.manifest.input_schema, FILE_PATH) or mentions_format(entry.manifest.output_schema, FILE_PATH),
                params_bytes=200,
                is_ready=self._is_ready(entry),
                has_effects=entry.manifest.side_effect_scope is not SideEffectScope.NONE,
                usual_s=self._durations.usual(entry.manifest.tool_id, entry.manifest.version),
            )
        )
