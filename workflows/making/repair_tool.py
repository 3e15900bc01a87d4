"""One tool that does not do what it should, to a version that does, or to the reason why the old one stays."""

from pydantic import JsonValue
from temporalio import workflow

from toolagent.client import names
from toolagent.contracts.making import MakeEnd
from workflows.making.making import Making


@workflow.defn(name=names.REPAIR_TOOL)
class RepairTool:
    def __init__(self) -> None:
        self._making = Making()

    @workflow.run
    async def run(self, given: JsonValue = None, *surplus: JsonValue) -> MakeEnd:
        return await self._making.run(given, surplus)

    @workflow.signal(name=names.GUIDE)
    async def guide(self, *given: JsonValue) -> None:
        """Takes a `Guidance` as plain JSON."""
        await self._making.hear(given)
