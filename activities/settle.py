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
        """The result without the output: all that one workflow task says must fit into one message of 4 MiB."""
        return (await self._settlements.settle(request)).model_copy(update={"result": None})
