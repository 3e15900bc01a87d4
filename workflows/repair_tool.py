"""One tool that does not do what it should, to a version that does, or to the reason why the old one stays."""

from pydantic import JsonValue
from temporalio import workflow

from toolagent.client import names, stubs
from toolagent.contracts.making import MakeRequest, Stage
from toolagent.contracts.making_steps import BriefStep, EndStep, MakeEnd, TaskStep
from toolagent.core.task_requests import subject_of
from workflows.making import NotMade, Work, request_of

__all__ = ["RepairTool"]


@workflow.defn(name=names.REPAIR_TOOL)
class RepairTool:
    def __init__(self) -> None:
        self._work = Work()

    @workflow.run
    async def run(self, given: JsonValue = None, *surplus: JsonValue) -> MakeEnd:
        request = request_of(given, surplus)
        self._work.otherwise = f"The tool {subject_of(request.spec)!r} stays as it is."
        return await self._work.run(request, self._mended)

    @workflow.signal(name=names.GUIDE)
    async def guide(self, *given: JsonValue) -> None:
        """Takes a `Guidance` as plain JSON."""
        await self._work.hear(given)

    async def _mended(self, request: MakeRequest) -> EndStep:
        tool_id = subject_of(request.spec)
        await self._work.enter(request, Stage.INSPECT)
        step = TaskStep(task_id=request.task_id, spec=request.spec)
        found = await self._work.step(stubs.diagnose, step, "diagnose")
        if found.refused:
            self._work.otherwise = ""
            raise NotMade(found.refused)
        await self._work.enter(request, Stage.PLAN)
        self._work.mends, self._work.mends_content = found.version, found.content
        # Another one may be active by the end.
        self._work.otherwise = f"The tool {tool_id!r} stays as it is; what was to be mended is its version {found.version}."
        await self._work.enter(request, Stage.BUILD)
        end = await self._work.coded(request, BriefStep(task_id=request.task_id, spec=request.spec, diagnosis=found))
        return end.model_copy(update={"reason": f"{tool_id!r} is mended. Version {found.version} stays, for a rollback."})
