"""One tool, from what is asked for to a version that may be called, or to the reason why there is none."""

from pydantic import JsonValue
from temporalio import workflow

from toolagent.client import names, stubs
from toolagent.contracts.making import MakeRequest, Stage
from toolagent.contracts.making_steps import BriefStep, BuildStep, EndStep, Inspected, MakeEnd, TaskStep
from toolagent.contracts.plans import BuildPlan, CodingBuild, NothingToBuild
from toolagent.contracts.task_specs import GithubDeploy
from toolagent.core.planning import plan
from workflows.answering import answered
from workflows.making import NotMade, Work, request_of

__all__ = ["CreateTool"]


@workflow.defn(name=names.CREATE_TOOL)
class CreateTool:
    def __init__(self) -> None:
        self._work = Work()

    @workflow.run
    async def run(self, given: JsonValue = None, *surplus: JsonValue) -> MakeEnd:
        return await self._work.run(request_of(given, surplus), self._made)

    @workflow.signal(name=names.GUIDE)
    async def guide(self, *given: JsonValue) -> None:
        """Takes a `Guidance` as plain JSON."""
        await self._work.hear(given)

    async def _made(self, request: MakeRequest) -> EndStep:
        await self._work.enter(request, Stage.INSPECT)
        step = TaskStep(task_id=request.task_id, spec=request.spec)
        inspected = await self._work.step(stubs.inspect_task, step, "inspect")
        if (end := await answered(request, inspected)) is not None:
            return end
        if inspected.refused:
            raise NotMade(inspected.refused)
        self._work.commit = inspected.inspection.commit
        await self._work.enter(request, Stage.PLAN)
        chosen = plan(request.spec, inspected.inspection if isinstance(request.spec, GithubDeploy) else None)
        return await self._built(request, inspected, chosen)

    async def _built(self, request: MakeRequest, inspected: Inspected, chosen: BuildPlan) -> EndStep:
        if isinstance(chosen, NothingToBuild):
            raise NotMade(chosen.reason)
        await self._work.enter(request, Stage.BUILD)
        notes = chosen.notes
        if not isinstance(chosen, CodingBuild):
            step = BuildStep(task_id=request.task_id, spec=request.spec, plan=chosen)
            outcome = await self._work.step(stubs.build_candidate, step, f"build: {chosen.way}")
            if outcome.candidate is not None:
                assessed = await self._work.assessed(request, outcome.candidate)
                if assessed.for_the_maker:
                    raise NotMade(f"What was built did not pass the gate.\n\n{assessed.for_the_maker}")
                return await self._work.registered(request, outcome.candidate, assessed)
            notes = (*notes, f"{outcome.reason}\n{outcome.told}".strip())
        if isinstance(request.spec, GithubDeploy):
            laid_out = TaskStep(task_id=request.task_id, spec=request.spec)
            await self._work.step(stubs.lay_out, laid_out, "lay the repository out")
        brief = BriefStep(task_id=request.task_id, spec=request.spec, inspection=inspected.inspection, notes=notes)
        return await self._work.coded(request, brief)
