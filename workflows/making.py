"""What making and repairing tools have in common: a turn to run, stages, an agent in rounds, the gate, an end that leaves nothing."""

import asyncio
from collections.abc import Awaitable, Callable

from pydantic import JsonValue, ValidationError
from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError, is_cancelled_exception

from toolagent.client import names, stubs
from toolagent.contracts.agent import AgentEnd, AgentRequest, AgentResult, Guidance
from toolagent.contracts.making import MakeRequest, Stage
from toolagent.contracts.making_steps import Assessed, BriefStep, EndStep, MakeEnd, RegisterStep, Slot, StageStep, TaskStep, VerifyStep
from toolagent.contracts.tasks import TaskState
from toolagent.core.loop import another_round
from workflows import making_options as options

__all__ = ["NotMade", "Work", "request_of"]


class NotMade(Exception):
    """The task ends here, for this reason."""


def request_of(given: JsonValue) -> MakeRequest:
    """From plain JSON: what is none fails the workflow at once, where a typed argument would be tried for ever."""
    try:
        return MakeRequest.model_validate(given)
    except ValidationError as error:
        raise ApplicationError(f"The input is not a MakeRequest: {error}", non_retryable=True) from error


class Work:
    """On one task. Lives in its workflow."""

    def __init__(self) -> None:
        self._said: list[Guidance] = []
        self._tell: Callable[[Guidance], Awaitable[None]] | None = None
        self.mends = ""
        """The version that what is made takes over from; empty for a new tool."""
        self.otherwise = ""
        """What holds when the task does not succeed."""

    async def hear(self, guidance: Guidance) -> None:
        """For the agent, now or when there is one."""
        self._said.append(guidance)
        if self._tell is not None:
            await self._tell(guidance)

    async def run(self, request: MakeRequest, made: Callable[[MakeRequest, Slot], Awaitable[EndStep]]) -> MakeEnd:
        """From the wait for a turn to the end that is written down."""
        slot: Slot | None = None
        try:
            slot = await workflow.execute_activity(stubs.await_slot, request, **options.await_slot())
            end = await made(request, slot)
        except NotMade as why:
            end = EndStep(request=request, status=TaskState.FAILED, reason=str(why))
        except (asyncio.CancelledError, ActivityError, ChildWorkflowError) as error:
            end = _ended_by(request, error)
        if end.status is not TaskState.COMPLETED and self.otherwise:
            end = end.model_copy(update={"reason": f"{end.reason}\n\n{self.otherwise}"})
        if slot is not None:
            step = TaskStep(task_id=request.task_id, spec=request.spec)
            await workflow.execute_activity(stubs.clear_task, step, **options.making(slot.host, "clear up"))
        # Only now: whoever reads that it has ended finds nothing left of it.
        await workflow.execute_local_activity(stubs.end_task, end, **options.task_note(f"end: {end.status}"))
        await workflow.wait_condition(workflow.all_handlers_finished)
        return MakeEnd(task_id=request.task_id, status=end.status, tool_ids=end.tool_ids, reason=end.reason)

    async def enter(self, request: MakeRequest, stage: Stage, *, went_well: bool = True) -> None:
        step = StageStep(request=request, stage=stage, went_well=went_well)
        await workflow.execute_local_activity(stubs.enter_stage, step, **options.task_note(f"stage: {stage}"))

    async def coded(self, request: MakeRequest, slot: Slot, brief: BriefStep) -> EndStep:
        """By the agent, in as many rounds as it has. Raises NotMade."""
        asked = await workflow.execute_activity(stubs.brief_agent, brief, **options.making(slot.host, "brief the agent"))
        while True:
            result = await self._agent_result(asked, slot)
            if result.end is not AgentEnd.REGISTERED or result.candidate is None:
                raise NotMade(result.reason)
            assessed = await self.assessed(request, slot, result.candidate, result.state.round)
            if not assessed.for_the_maker:
                return await self.registered(request, slot, result.candidate, assessed)
            again = another_round(asked, result.state, assessed.for_the_maker)
            if again is None:
                raise NotMade(f"What was built did not pass the gate in {result.state.round} rounds.\n\n{assessed.for_the_maker}")
            asked = asked.model_copy(update={"resume_from": again})
            await self.enter(request, Stage.BUILD, went_well=False)

    async def assessed(self, request: MakeRequest, slot: Slot, candidate: str, number: int = 1) -> Assessed:
        """What the gate says of it."""
        await self.enter(request, Stage.VERIFY)
        step = VerifyStep(task_id=request.task_id, spec=request.spec, candidate=candidate, round=number, mends=self.mends)
        return await workflow.execute_activity(stubs.verify_candidate, step, **options.making(slot.host, f"verify, round {number}"))

    async def registered(self, request: MakeRequest, slot: Slot, candidate: str, assessed: Assessed) -> EndStep:
        """It can be called from now on. Raises NotMade."""
        await self.enter(request, Stage.REGISTER)
        evidence, mends = assessed.evidence, self.mends
        step = RegisterStep(task_id=request.task_id, spec=request.spec, candidate=candidate, evidence=evidence, mends=mends)
        registered = await workflow.execute_activity(stubs.register_candidate, step, **options.making(slot.host, "register"))
        if registered.refused:
            raise NotMade(registered.refused)
        await self.enter(request, Stage.ANNOUNCE)
        reason = f"{', '.join(registered.tool_ids)} can be called."
        return EndStep(request=request, status=TaskState.COMPLETED, reason=reason, tool_ids=registered.tool_ids, evidence=evidence)

    async def _agent_result(self, asked: AgentRequest, slot: Slot) -> AgentResult:
        agent = await workflow.start_child_workflow(
            names.CODING_AGENT, args=[asked, slot.host], result_type=AgentResult, **options.coding_agent(asked.task_id)
        )

        async def tell(guidance: Guidance) -> None:
            # The agent hears the same twice as once. One that has ended hears it in the next round, or never.
            try:
                await agent.signal(names.GUIDE, guidance)
            except ApplicationError:
                return

        self._tell = tell
        try:
            for guidance in tuple(self._said):
                await tell(guidance)
            return await agent
        finally:
            self._tell = None


def _ended_by(request: MakeRequest, error: BaseException) -> EndStep:
    if is_cancelled_exception(error):
        return EndStep(request=request, status=TaskState.CANCELLED, reason="It was cancelled; nothing is left of it but its log.")
    cause = error.cause if isinstance(error, ActivityError | ChildWorkflowError) else error
    message = cause.message if isinstance(cause, ApplicationError) else str(cause)
    return EndStep(request=request, status=TaskState.FAILED, reason=message or type(cause).__name__)
