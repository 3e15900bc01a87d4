"""Repairs one tool: to a version that works, or to the reason why the old one stays."""

from pydantic import JsonValue
from temporalio import workflow

from toolagent.client import names
from toolagent.contracts.making import MakeEnd
from workflows.making.making import Making


@workflow.defn(name=names.REPAIR_TOOL)
class RepairTool(Making):
    @workflow.run
    async def run(self, given: JsonValue = None, *surplus: JsonValue) -> MakeEnd:
        return await self.made(given, surplus)
