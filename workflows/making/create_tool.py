"""Makes one tool: from a request to a version that may be called, or to the reason why there is none."""

from pydantic import JsonValue
from temporalio import workflow

from toolagent.client import names
from toolagent.contracts.making import MakeEnd
from workflows.making.making import Making


@workflow.defn(name=names.CREATE_TOOL)
class CreateTool(Making):
    @workflow.run
    async def run(self, given: JsonValue = None, *surplus: JsonValue) -> MakeEnd:
        return await self.made(given, surplus)
