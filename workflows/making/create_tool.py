"""One tool, from what is asked for to a version that may be called, or to the reason why there is none."""

from pydantic import JsonValue
from temporalio import workflow

from toolagent.client import names
from toolagent.contracts.making import MakeEnd
from workflows.making.making import Making


@workflow.defn(name=names.CREATE_TOOL)
class CreateTool:
    def __init__(self) -> None:
        self._making = Making()

    @workflow.run
    async def run(self, given: JsonValue = None, *surplus: JsonValue) -> MakeEnd:
        return await self._making.run(given, surplus)

    @workflow.signal(name=names.GUIDE)
    async def guide(self, *given: JsonValue) -> None:
        """Takes a `Guidance` as plain JSON."""
        await self._making.hear(given)
