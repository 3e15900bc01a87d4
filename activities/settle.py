"""Ending a call: the last step."""

from temporalio import activity

from engine.calls.settlement import Settlements
from toolagent.client import names
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.steps import SettleRequest

__all__ = ["Settle"]


class Settle:
    def __init__(self, settlements: Settlements) -> None:
        self._settlements = settlements

    @activity.defn(name=names.SETTLE)
    async def settle(self, request: SettleRequest) -> ToolResult:
        """The result that stands, without the output where that is the workflow's own: what one task says must fit into 4 MiB."""
        result = await self._settlements.settle(request)
        return result.model_copy(update={"result": None}) if result.result == request.outcome.output else result
