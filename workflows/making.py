"""What making and repairing tools have in common: a turn to run, stages, an agent in rounds, the gate, an end that leaves nothing."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, TypeVar

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ChildWorkflowError,
    FailureError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)

from toolagent.client import names, stubs
from toolagent.contracts.agent import AgentEnd, AgentRequest, AgentResult, Guidance
from toolagent.contracts.making import MakeRequest, Stage, Tried
from toolagent.contracts.making_steps import (
    AgentStart,
    Assessed,
    BriefStep,
    EndStep,
    HostStep,
    MakeEnd,
    RegisterStep,
    Slot,
    StageStep,
    TaskStep,
    VerifyStep,
)
from toolagent.contracts.plans import BuildPlan
from toolagent.contracts.task_specs import TASK_ID_PATTERN, GithubDeploy, is_making
from toolagent.contracts.tasks import TaskState
from toolagent.core.loop import MOST_HEARD, another_round
from toolagent.core.stage_account import Entered, stage_account
from toolagent.core.task_reasons import abridged, of_the_agent, ready_reason, why_a_model
from workflows import making_options as options
from workflows.inputs import guidance_of, input_of
from workflows.lost_hosts import HostLost, found_host, is_not_taken, on_host

__all__ = ["NotMade", "Work", "request_of"]

S = TypeVar("S")
R = TypeVar("R")

_MOST_LOOKS = 4
"""How often the time is doubled that a busy host is left in peace for."""


class NotMade(Exception):
    """The task ends here, for this reason."""


def request_of(given: JsonValue, surplus: Sequence[JsonValue]) -> MakeRequest:
    """From plain JSON: what is none fails the workflow at once, where a typed argument would be tried for ever."""
    request = input_of(MakeRequest, given, surplus)
    # Folders, rows and the agent are named by it: it is to be nobody else's.
    if request.task_id != workflow.info().workflow_id or not is_making(request.task_id):
        own = f"the workflow's own id ({workflow.info().workflow_id!r}), and of the form {TASK_ID_PATTERN}"
        raise ApplicationError(f"task_id: {request.task_id[:128]!r} must be {own}.", non_retryable=True)
    return request


class Work:
    """On one task. Lives in its workflow."""

    def __init__(self) -> None:
        self._said: dict[str, Guidance] = {}
        self._heard: frozenset[str] = frozenset()
        """By an agent, in an earlier round."""
        self._tell: Callable[[Guidance], Awaitable[None]] | None = None
        self.mends = ""
        """The version that what is made takes over from; empty for a new tool."""
        self.mends_content = ""
        """The archive of its files, as they were."""
        self.commit = ""
        """What was cloned; empty where there is no repository."""
        self.otherwise = ""
        """What holds when the task does not succeed."""
        self.tried: tuple[Tried, ...] = ()
        """The ways that need no model: those that are none, and, before them, those that were tried."""
        self._task_id = ""
        self._slot = Slot(host="")
        self._agent_on: str | None = None
        """The host that has the agent's files."""
        self._is_moved = False
        self._is_coded = False
        """The agent was to do it."""
        self._entered: tuple[Entered, ...] = ()
        self._cost_usd = 0.0

    async def hear(self, given: Sequence[JsonValue]) -> None:
        """For the agent, now or when there is one. The same `id` is told once; of more than it hears the task is not told at all."""
        guidance = guidance_of(given)
        if guidance is None or guidance.id in self._said or len(self._said) >= MOST_HEARD:
            return
        self._said[guidance.id] = guidance
        if self._tell is not None:
            await self._tell(guidance)

    async def run(self, request: MakeRequest, made: Callable[[MakeRequest], Awaitable[EndStep]]) -> MakeEnd:
        """From the wait for a turn to the end that is written down."""
        self._task_id = request.task_id
        try:
            self._slot = await workflow.execute_activity(stubs.await_slot, request, **options.await_slot())
            end = await self._made(request, made)
        except (NotMade, asyncio.CancelledError, FailureError) as error:
            end = _ended_by(request, error)
        if end.status is not TaskState.COMPLETED and self.otherwise:
            end = end.model_copy(update={"reason": f"{end.reason}\n\n{self.otherwise}"})
        end = end.model_copy(update={"tried": self._all_tried(end)})
        if self._slot.host and (left := await self._cleared(request)):
            end = end.model_copy(update={"reason": f"{end.reason}\n\n{left}"})
        # Only now: whoever reads that it has ended finds nothing left of it.
        await _surely(lambda: workflow.execute_local_activity(stubs.end_task, end, **options.task_note(f"end: {end.status}")))
        workflow.set_current_details(stage_account(self._entered, workflow.now(), self._cost_usd))
        await workflow.wait_condition(workflow.all_handlers_finished)
        return MakeEnd(task_id=request.task_id, status=end.status, tool_ids=end.tool_ids, reason=end.reason, tried=end.tried)

    async def enter(self, request: MakeRequest, stage: Stage, *, went_well: bool = True) -> None:
        """Not when the task is to be cancelled."""
        _heed_cancellation()
        step = StageStep(request=request, stage=stage, went_well=went_well and not self._is_moved)
        self._is_moved = False
        await workflow.execute_local_activity(stubs.enter_stage, step, **options.task_note(f"stage: {stage}"))
        self._show(stage)
        _heed_cancellation()

    async def build_begins(self, request: MakeRequest, *, went_well: bool) -> None:
        """Where it has not: what failed before the gate is followed by the next way."""
        if not self._entered or self._entered[-1].stage is not Stage.BUILD:
            await self.enter(request, Stage.BUILD, went_well=went_well)

    def came(self, plan: BuildPlan, outcome: Literal["passed", "failed"], reason: str = "") -> None:
        """What became of a way; it stands behind those that were tried before it."""
        so_far = [one for one in self.tried if one.outcome in ("passed", "failed")]
        one = Tried(way=plan.way, found=plan.found, outcome=outcome, reason=abridged(reason))
        self.tried = (*so_far, one, *self.tried[len(so_far) :])

    async def step(self, stub: Callable[[S], Awaitable[R]], step: S, summary: str, *, anywhere: bool = False, certain: bool = False) -> R:
        """On the host of the task, or, when that is lost, `anywhere` that is alive, if it needs nothing of what lies there.

        Otherwise raises HostLost then: `run` begins again on another host, as long as no agent has begun. Not when the task is to be
        cancelled, unless it is `certain`: begun whatever else, and answered.
        """
        if not certain:
            _heed_cancellation()
        while True:
            seek = HostStep(task_id=self._task_id, host=self._slot.host, moves=anywhere or self._agent_on is None)
            try:
                return await on_host(stub, step, lambda: options.making(self._slot, summary), seek)
            except HostLost as lost:
                if not anywhere:
                    raise
                self._slot = lost.found

    async def coded(self, request: MakeRequest, brief: BriefStep) -> EndStep:
        """By the agent, in as many rounds as it has. Raises NotMade, HostLost."""
        self._is_coded = True
        asked = await self.step(stubs.brief_agent, brief, "brief the agent")
        self.otherwise = self.otherwise or why_a_model(brief.notes)
        self._agent_on = self._slot.host
        while True:
            if self._slot.host != self._agent_on:
                raise HostLost(self._agent_on, self._slot)
            result = await self._agent_result(asked, self._slot)
            if result.end is not AgentEnd.REGISTERED or result.candidate is None:
                raise NotMade(result.reason)
            assessed = await self.assessed(request, result.candidate, result.state.round)
            if not assessed.for_the_maker:
                return await self.registered(request, result.candidate, assessed)
            again = another_round(asked, result.state, assessed.for_the_maker)
            if again is None:
                raise NotMade(f"What was built did not pass the gate in {result.state.round} rounds.\n\n{assessed.for_the_maker}")
            asked = asked.model_copy(update={"resume_from": again})
            await self.enter(request, Stage.BUILD, went_well=False)

    async def assessed(self, request: MakeRequest, candidate: str, number: int = 1) -> Assessed:
        """What the gate says of it."""
        await self.enter(request, Stage.VERIFY)
        step = VerifyStep(
            task_id=request.task_id, spec=request.spec, candidate=candidate, round=number, mends=self.mends, commit=self.commit
        )
        return await self.step(stubs.verify_candidate, step, f"verify, round {number}", anywhere=True)

    async def registered(self, request: MakeRequest, candidate: str, assessed: Assessed) -> EndStep:
        """It can be called from now on. Raises NotMade."""
        await self.enter(request, Stage.REGISTER)
        evidence = assessed.evidence
        step = RegisterStep(
            task_id=request.task_id,
            spec=request.spec,
            candidate=candidate,
            evidence=evidence,
            mends=self.mends,
            mends_content=self.mends_content,
        )
        try:
            registered = await self.step(stubs.register_candidate, step, "register", anywhere=True)
        except (asyncio.CancelledError, ActivityError):
            if workflow.cancellation_reason() is None:
                raise
            # It may have been done all the same, and its answer lost: nobody knows, until it is asked for again.
            registered = await self.step(stubs.register_candidate, step, "register", anywhere=True, certain=True)
        if registered.refused:
            raise NotMade(registered.refused)
        announce = StageStep(request=request, stage=Stage.ANNOUNCE)
        # What can be called cannot be cancelled.
        await _surely(lambda: workflow.execute_local_activity(stubs.enter_stage, announce, **options.task_note("stage: announce")))
        self._show(Stage.ANNOUNCE)
        reason = ready_reason(registered.tool_ids, evidence.left_out)
        return EndStep(request=request, status=TaskState.COMPLETED, reason=reason, tool_ids=registered.tool_ids, evidence=evidence)

    def _all_tried(self, end: EndStep) -> tuple[Tried, ...]:
        """With the agent, where it was to do it."""
        if not self._is_coded or not isinstance(end.request.spec, GithubDeploy):
            return self.tried
        outcome = "passed" if end.status is TaskState.COMPLETED else "failed"
        reason = "" if outcome == "passed" else of_the_agent(end.reason)
        return (*self.tried, Tried(way="coding", found="coding agent", outcome=outcome, reason=reason))

    def _show(self, stage: Stage) -> None:
        """On Temporal's page of the workflow; nothing of it is in the history."""
        self._entered = (*self._entered, Entered(stage, workflow.now(), self._cost_usd))
        workflow.set_current_details(stage_account(self._entered))

    async def _made(self, request: MakeRequest, made: Callable[[MakeRequest], Awaitable[EndStep]]) -> EndStep:
        while True:
            try:
                return await made(request)
            except HostLost as lost:
                if self._agent_on is not None:
                    raise NotMade(str(lost)) from None
                self._slot, self._is_moved = lost.found, True

    async def _cleared(self, request: MakeRequest) -> str:
        """Why something of it is still there; empty when nothing is."""
        step, slot = TaskStep(task_id=request.task_id, spec=request.spec), self._slot
        seek = HostStep(task_id=request.task_id, host=slot.host, moves=False)
        for looks in itertools.count():
            chosen = options.clearing(slot, min(looks, _MOST_LOOKS))
            try:
                await _surely(lambda chosen=chosen: workflow.execute_activity(stubs.clear_task, step, **chosen))
            except ActivityError as error:
                if not is_not_taken(error):
                    return f"What it left on the host {slot.host!r} could not be cleared up yet, and is tried again: {error.cause}"
            else:
                return ""
            if (await _surely(lambda: found_host(seek))).host != slot.host:
                break
        return f"The host {slot.host!r} is away: what is left of it there goes when that is started."

    async def _agent_result(self, asked: AgentRequest, slot: Slot) -> AgentResult:
        _heed_cancellation()
        try:
            agent = await workflow.start_child_workflow(
                names.CODING_AGENT,
                AgentStart(request=asked, slot=slot),
                result_type=AgentResult,
                **options.coding_agent(asked.task_id),
            )
        except WorkflowAlreadyStartedError as error:
            taken = f"Somebody else runs the workflow {error.workflow_id!r} on Temporal, which is to be the task's agent."
            raise NotMade(f"{taken} Terminate it, and ask for the task again.") from error

        async def tell(guidance: Guidance) -> None:
            # The agent hears the same twice as once. One that has ended hears it in the next round, or never.
            try:
                await agent.signal(names.GUIDE, guidance)
            except ApplicationError:
                return

        self._tell = tell
        try:
            try:
                for guidance in [one for one in self._said.values() if one.id not in self._heard]:
                    await tell(guidance)
                # It may have come while the agent was being told: a signal that is under way can swallow it.
                _heed_cancellation()
                await workflow.wait([agent])
            except asyncio.CancelledError:
                # It is to have ended before anybody clears up behind it.
                await _cancelled(agent.id)
            result = await agent
        finally:
            self._tell = None
        self._heard, self._cost_usd = frozenset(result.state.heard), result.state.cost_usd
        return result


def _ended_by(request: MakeRequest, error: BaseException) -> EndStep:
    # A step that fails when it is told to stop, or whose worker dies then, ends as any that fails; so does the agent that had it done.
    if is_cancelled_exception(error) or workflow.cancellation_reason() is not None:
        return EndStep(request=request, status=TaskState.CANCELLED, reason="It was cancelled.")
    cause: BaseException = error
    # An agent's step that fails lies two deep.
    while isinstance(cause, ActivityError | ChildWorkflowError) and cause.cause is not None:
        cause = cause.cause
    message = cause.message if isinstance(cause, ApplicationError) else str(cause)
    return EndStep(request=request, status=TaskState.FAILED, reason=message or type(cause).__name__)


def _heed_cancellation() -> None:
    """Before anything begins: what was to be cancelled may have had its answer all the same, and then nobody else hears of it."""
    if workflow.cancellation_reason() is not None:
        raise asyncio.CancelledError


async def _cancelled(agent_id: str) -> None:
    """The agent, in whichever run it is. Cancelled as a child only its first run would hear of it, which may have ended long ago."""
    try:
        await workflow.get_external_workflow_handle(agent_id).cancel()
    except ApplicationError:
        return  # it has ended


async def _surely(work: Callable[[], Awaitable[R]]) -> R:
    """Also when the task is cancelled meanwhile."""
    while True:
        try:
            return await work()
        except (asyncio.CancelledError, ActivityError) as error:
            if not is_cancelled_exception(error):
                raise
