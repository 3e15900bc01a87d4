"""One tool, from what is asked for to a version that may be called, or to the reason why there is none."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from pydantic import JsonValue, ValidationError
from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError, is_cancelled_exception

from toolagent.client import names, stubs
from toolagent.contracts.agent import AgentEnd, AgentRequest, AgentResult, Guidance
from toolagent.contracts.making import MakeRequest, Stage
from toolagent.contracts.making_steps import (
    Assessed,
    BriefStep,
    BuildStep,
    EndStep,
    Inspected,
    MakeEnd,
    RegisterStep,
    Slot,
    StageStep,
    TaskStep,
    VerifyStep,
)
from toolagent.contracts.plans import BuildPlan, CodingBuild, NothingToBuild
from toolagent.contracts.task_specs import GithubDeploy
from toolagent.contracts.tasks import TaskState
from toolagent.core.loop import another_round
from toolagent.core.planning import plan
from workflows import making_options as options

__all__ = ["CreateTool"]


class _NotMade(Exception):
    """The task ends here, for this reason."""


@workflow.defn(name=names.CREATE_TOOL)
class CreateTool:
    def __init__(self) -> None:
        self._said: list[Guidance] = []
        self._tell: Callable[[Guidance], Awaitable[None]] | None = None
        self._host = ""

    @workflow.run
    async def run(self, given: JsonValue = None) -> MakeEnd:
        """Takes a `MakeRequest` as plain JSON: one that is none fails at once, where a typed argument would be tried for ever."""
        try:
            request = MakeRequest.model_validate(given)
        except ValidationError as error:
            raise ApplicationError(f"The input is not a MakeRequest: {error}", non_retryable=True) from error
        end = await self._end(request)
        if self._host:
            await workflow.execute_activity(
                stubs.clear_task, TaskStep(task_id=request.task_id, spec=request.spec), **options.making(self._host, "clear up")
            )
        # Only now: whoever reads that it has ended finds nothing left of it.
        await workflow.execute_local_activity(stubs.end_task, end, **options.task_note(f"end: {end.status}"))
        await workflow.wait_condition(workflow.all_handlers_finished)
        return MakeEnd(task_id=request.task_id, status=end.status, tool_ids=end.tool_ids, reason=end.reason)

    @workflow.signal(name=names.GUIDE)
    async def guide(self, guidance: Guidance) -> None:
        self._said.append(guidance)
        if self._tell is not None:
            await self._tell(guidance)

    async def _end(self, request: MakeRequest) -> EndStep:
        try:
            return await self._made(request)
        except _NotMade as why:
            return EndStep(request=request, status=TaskState.FAILED, reason=str(why))
        except (asyncio.CancelledError, ActivityError, ChildWorkflowError) as error:
            if is_cancelled_exception(error):
                return EndStep(request=request, status=TaskState.CANCELLED, reason="It was cancelled; nothing is left of it but its log.")
            return EndStep(request=request, status=TaskState.FAILED, reason=_cause(error))

    async def _made(self, request: MakeRequest) -> EndStep:
        step = TaskStep(task_id=request.task_id, spec=request.spec)
        slot = await workflow.execute_activity(stubs.await_slot, request, **options.await_slot())
        self._host = slot.host
        await self._enter(request, Stage.INSPECT)
        inspected = await workflow.execute_activity(stubs.inspect_task, step, **options.making(slot.host, "inspect"))
        if inspected.answered_by is not None:
            reason = f"{inspected.answered_by!r} does that already; nothing was built."
            return EndStep(request=request, status=TaskState.COMPLETED, reason=reason, tool_ids=(inspected.answered_by,))
        if inspected.refused:
            raise _NotMade(inspected.refused)
        await self._enter(request, Stage.PLAN)
        chosen = plan(request.spec, inspected.inspection if isinstance(request.spec, GithubDeploy) else None)
        return await self._built(request, slot, inspected, chosen)

    async def _built(self, request: MakeRequest, slot: Slot, inspected: Inspected, chosen: BuildPlan) -> EndStep:
        if isinstance(chosen, NothingToBuild):
            raise _NotMade(chosen.reason)
        await self._enter(request, Stage.BUILD)
        notes = chosen.notes
        if not isinstance(chosen, CodingBuild):
            build = BuildStep(task_id=request.task_id, spec=request.spec, plan=chosen)
            outcome = await workflow.execute_activity(stubs.build_candidate, build, **options.making(slot.host, f"build: {chosen.way}"))
            if outcome.candidate is not None:
                assessed = await self._assessed(request, slot, outcome.candidate)
                if not assessed.for_the_maker:
                    return await self._registered(request, slot, outcome.candidate, assessed)
                raise _NotMade(f"What was built did not pass the gate.\n\n{assessed.for_the_maker}")
            notes = (*notes, f"{outcome.reason}\n{outcome.told}".strip())
        brief = BriefStep(task_id=request.task_id, spec=request.spec, inspection=inspected.inspection, notes=notes)
        return await self._coded(request, slot, brief)

    async def _coded(self, request: MakeRequest, slot: Slot, brief: BriefStep) -> EndStep:
        asked = await workflow.execute_activity(stubs.brief_agent, brief, **options.making(slot.host, "brief the agent"))
        while True:
            result = await self._agent_result(asked)
            if result.end is not AgentEnd.REGISTERED or result.candidate is None:
                raise _NotMade(result.reason)
            assessed = await self._assessed(request, slot, result.candidate, round=result.state.round, with_model=True)
            if not assessed.for_the_maker:
                return await self._registered(request, slot, result.candidate, assessed)
            again = another_round(asked, result.state, assessed.for_the_maker)
            if again is None:
                raise _NotMade(f"What was built did not pass the gate in {result.state.round} rounds.\n\n{assessed.for_the_maker}")
            asked = asked.model_copy(update={"resume_from": again})
            await self._enter(request, Stage.BUILD, went_well=False)

    async def _agent_result(self, asked: AgentRequest) -> AgentResult:
        agent = await workflow.start_child_workflow(
            names.CODING_AGENT, args=[asked, self._host], result_type=AgentResult, **options.coding_agent(asked.task_id)
        )

        async def tell(guidance: Guidance) -> None:
            # The agent hears the same twice as once. One that has ended hears it in the next round, or never.
            with contextlib.suppress(ApplicationError):
                await agent.signal(names.GUIDE, guidance)

        self._tell = tell
        try:
            for guidance in tuple(self._said):
                await tell(guidance)
            return await agent
        finally:
            self._tell = None

    async def _assessed(self, request: MakeRequest, slot: Slot, candidate: str, *, round: int = 1, with_model: bool = False) -> Assessed:
        await self._enter(request, Stage.VERIFY)
        step = VerifyStep(task_id=request.task_id, spec=request.spec, candidate=candidate, round=round, with_model=with_model)
        return await workflow.execute_activity(stubs.verify_candidate, step, **options.making(slot.host, f"verify, round {round}"))

    async def _registered(self, request: MakeRequest, slot: Slot, candidate: str, assessed: Assessed) -> EndStep:
        await self._enter(request, Stage.REGISTER)
        step = RegisterStep(task_id=request.task_id, spec=request.spec, candidate=candidate, evidence=assessed.evidence)
        registered = await workflow.execute_activity(stubs.register_candidate, step, **options.making(slot.host, "register"))
        if registered.refused:
            raise _NotMade(registered.refused)
        await self._enter(request, Stage.ANNOUNCE)
        return EndStep(
            request=request,
            status=TaskState.COMPLETED,
            reason=f"{', '.join(registered.tool_ids)} can be called.",
            tool_ids=registered.tool_ids,
            evidence=assessed.evidence,
        )

    async def _enter(self, request: MakeRequest, stage: Stage, *, went_well: bool = True) -> None:
        step = StageStep(request=request, stage=stage, went_well=went_well)
        await workflow.execute_local_activity(stubs.enter_stage, step, **options.task_note(f"stage: {stage}"))


def _cause(error: BaseException) -> str:
    cause = error.cause if isinstance(error, ActivityError | ChildWorkflowError) else error
    return str(cause) or type(cause).__name__
