"""One tool, from what is asked for to a version that may be called, or to the reason why there is none."""

from pydantic import JsonValue
from temporalio import workflow

from toolagent.client import names, stubs
from toolagent.contracts.making import MakeRequest, Stage
from toolagent.contracts.making_steps import BriefStep, BuildStep, EndStep, Inspected, MakeEnd, TaskStep
from toolagent.contracts.plans import NothingToBuild
from toolagent.contracts.task_specs import GithubDeploy
from toolagent.core.first_way import first_way
from toolagent.core.planning import Ways, ways
from workflows.answering import answered
from workflows.making import NotMade, Work, request_of

__all__ = ["CreateTool"]

_EVERY_WAY = "every-way-is-tried"


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
        found = ways(request.spec, inspected.inspection if isinstance(request.spec, GithubDeploy) else None)
        if not workflow.patched(_EVERY_WAY):
            found = first_way(request.spec, found, inspected.inspection)
        self._work.tried = found.others
        return await self._built(request, inspected, found)

    async def _built(self, request: MakeRequest, inspected: Inspected, found: Ways) -> EndStep:
        """By the first way that passes the gate; else by the coding agent."""
        notes: list[str] = []
        for number, chosen in enumerate(found.plans):
            await self._work.build_begins(request, went_well=number == 0)
            step = BuildStep(task_id=request.task_id, spec=request.spec, plan=chosen)
            outcome = await self._work.step(stubs.build_candidate, step, f"build: {chosen.way}")
            if outcome.candidate is None:
                reason = f"{outcome.reason}\n{outcome.told}".strip()
            else:
                assessed = await self._work.assessed(request, outcome.candidate)
                if not assessed.for_the_maker:
                    self._work.came(chosen, "passed")
                    return await self._work.registered(request, assessed.candidate or outcome.candidate, assessed)
                reason = f"What was built did not pass the gate.\n\n{assessed.for_the_maker}"
                if not found.goes_on:
                    raise NotMade(reason)
            self._work.came(chosen, "failed", reason)
            notes.append(reason)
        if isinstance(found.last, NothingToBuild):
            raise NotMade("\n\n".join((*notes, found.last.reason)))
        notes += [f"{one.found}: {one.reason}" for one in found.others if one.outcome == "not_possible"]
        await self._work.build_begins(request, went_well=not found.plans)
        if isinstance(request.spec, GithubDeploy):
            laid_out = TaskStep(task_id=request.task_id, spec=request.spec)
            await self._work.step(stubs.lay_out, laid_out, "lay the repository out")
        brief = BriefStep(task_id=request.task_id, spec=request.spec, inspection=inspected.inspection, notes=tuple(notes))
        return await self._work.coded(request, brief)
