"""Settles a call: its last step."""

from temporalio import activity

from activities.faults import Faults
from engine.calling.attempt import MAX_TRIES
from engine.calls.settlement import Settlements, without_output
from engine.calls.steps import MOST_LOST, Steps
from toolagent.contracts.calls import ToolResult
from toolagent_service import step_names
from toolagent_service.contracts.steps import SettleRequest


class Settle:
    """After MAX_TRIES unforeseen failures, a minimal record is tried as often."""

    def __init__(self, settlements: Settlements, steps: Steps) -> None:
        self._settlements, self._steps = settlements, steps
        self._faults = Faults(2 * MAX_TRIES)

    @activity.defn(name=step_names.SETTLE)
    async def settle(self, request: SettleRequest) -> ToolResult:
        """The result that stands. It omits an output that the workflow has already: one workflow task must fit into 4 MiB."""
        with self._faults.bounded(request.plan.call_id) as earlier:
            if earlier.count >= MAX_TRIES:
                return await self._settlements.record_fault(request, earlier.count, earlier.told)
            result = await self._settled(request)
        return without_output(result, request.outcome)

    async def _settled(self, request: SettleRequest) -> ToolResult:
        async with self._steps.under_way("settle", request.plan.call_id) as lost:
            settling = self._settlements.settle(request) if lost < MOST_LOST else self._settlements.give_up(request, lost)
            return await settling
