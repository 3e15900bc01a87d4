"""Makes and repairs tools: carries out the steps of `toolagent_service.making.making` on the task's host, and clears up.

An `if` about tasks belongs in the core. This module is about Temporal, hosts and cancelling.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError, FailureError, is_cancelled_exception

from toolagent.client import names
from toolagent.contracts.making import MakeEnd, MakeRequest, Stage
from toolagent.contracts.task_specs import TASK_ID_PATTERN, is_making
from toolagent.contracts.tasks import TaskState
from toolagent_service import stubs
from toolagent_service.contracts.agent import AgentRequest
from toolagent_service.contracts.making_steps import EndStep, HostStep, Slot, StageStep, TaskStep
from toolagent_service.making import making
from toolagent_service.making.stage_account import Entered, stage_account
from workflows import making_options as options
from workflows.cancelling import despite_cancellation, raise_if_cancelled
from workflows.inputs import input_of
from workflows.lost_hosts import HostLost, found_host, is_not_taken, on_host
from workflows.making.agent_runs import AgentRuns
from workflows.making.answering import answered

_EVERY_WAY = "every-way-is-tried"
_MOST_LOOKS = 4
"""How often the time that a busy host gets is doubled."""


class Making:
    """The workflow of one task."""

    def __init__(self) -> None:
        self._agent = AgentRuns()
        self._slot = Slot(host="")
        self._agent_on: str | None = None
        """The host with the agent's files."""
        self._entered: tuple[Entered, ...] = ()

    @workflow.signal(name=names.GUIDE)
    async def guide(self, *given: JsonValue) -> None:
        """Takes a `Guidance` as plain JSON."""
        await self._agent.hear(given)

    async def made(self, given: JsonValue, surplus: Sequence[JsonValue]) -> MakeEnd:
        """Run the task, from the wait for its turn to its recorded end."""
        self._state = making.begin(_request_of(given, surplus))
        request = self._state.request
        try:
            self._slot = await workflow.execute_activity(stubs.await_slot, request, **options.await_slot())
            end = await self._end()
        except (HostLost, asyncio.CancelledError, FailureError) as error:
            end = _ended_by(request, error)
        end = making.ended(self._state, end)
        if self._slot.host and (left := await self._cleared(request)):
            end = end.model_copy(update={"reason": f"{end.reason}\n\n{left}"})
        # Recorded after clearing, so that nothing is left of a task that has ended.
        await despite_cancellation(lambda: workflow.execute_local_activity(stubs.end_task, end, **options.task_note(f"end: {end.status}")))
        workflow.set_current_details(stage_account(self._entered, workflow.now(), self._cost_usd))
        await workflow.wait_condition(workflow.all_handlers_finished)
        return MakeEnd(task_id=request.task_id, status=end.status, tool_ids=end.tool_ids, reason=end.reason, tried=end.tried)

    async def _end(self) -> EndStep:
        """The end of the task. Raises HostLost if the agent has begun, because its files are on that host alone."""
        while True:
            step = making.next_step(self._state)
            if isinstance(step, making.Finish):
                if step.end.status is not TaskState.COMPLETED:
                    raise_if_cancelled()
                return step.end
            try:
                self._state = await self._carried_out(step)
            except HostLost as lost:
                if self._agent_on is not None:
                    raise
                self._slot, self._state = lost.found, making.moved(self._state)

    async def _carried_out(self, step: making.Step) -> making.MakingState:
        match step:
            case making.Act():
                return await self._acted(step)
            case making.Enter(stage=stage, went_well=went_well):
                await self._enter(stage, went_well=went_well)
                return making.after_entered(self._state, stage)
            case making.SeekAnswer(found=found):
                return making.after_answer(self._state, await answered(self._state.request, found))
            case making.ChooseWays():
                return making.after_ways(self._state, is_every_way_tried=workflow.patched(_EVERY_WAY))
            case making.RunAgent(asked=asked):
                if self._agent_on is not None and self._slot.host != self._agent_on:
                    raise HostLost(self._agent_on, self._slot)
                return making.after_agent(self._state, await self._agent.result(asked, self._slot))
            case making.Announce() | making.Finish():
                await self._announce()
                return making.after_announced(self._state)

    async def _enter(self, stage: Stage, *, went_well: bool) -> None:
        """Enter a stage, unless the task is cancelled."""
        raise_if_cancelled()
        step = StageStep(request=self._state.request, stage=stage, went_well=went_well)
        await workflow.execute_local_activity(stubs.enter_stage, step, **options.task_note(f"stage: {stage}"))
        self._show(stage)
        raise_if_cancelled()

    async def _announce(self) -> None:
        announce = StageStep(request=self._state.request, stage=Stage.ANNOUNCE)
        await despite_cancellation(
            lambda: workflow.execute_local_activity(stubs.enter_stage, announce, **options.task_note("stage: announce"))
        )
        self._show(Stage.ANNOUNCE)

    async def _acted(self, act: making.Act) -> making.MakingState:
        self._state = making.begun(self._state, act)
        try:
            raise_if_cancelled()
            answer = await self._answer(act)
        except (asyncio.CancelledError, ActivityError):
            if not act.is_certain or workflow.cancellation_reason() is None:
                raise
            # The step may have been done, and its answer lost. Asking again tells.
            answer = await self._answer(act)
        if isinstance(answer, AgentRequest):
            self._agent_on = self._slot.host
        return making.after_act(self._state, act, answer)

    async def _answer(self, act: making.Act) -> making.Answer:
        """The result of a step on the task's host. If that is lost, tries another one or raises HostLost."""
        stub = _stub_of(act.activity)
        while True:
            moves = act.anywhere or self._agent_on is None
            seek = HostStep(task_id=self._state.request.task_id, host=self._slot.host, moves=moves)
            try:
                return await on_host(stub, act.argument, lambda: options.making(self._slot, act.summary), seek)
            except HostLost as lost:
                if not act.anywhere:
                    raise
                self._slot = lost.found

    @property
    def _cost_usd(self) -> float:
        return self._state.agent.state.cost_usd if self._state.agent else 0.0

    def _show(self, stage: Stage) -> None:
        """Show the stage on Temporal's page of the workflow. It is not in the history."""
        self._entered = (*self._entered, Entered(stage, workflow.now(), self._cost_usd))
        workflow.set_current_details(stage_account(self._entered))

    async def _cleared(self, request: MakeRequest) -> str:
        """Remove what the task has left. Returns why something is still there; empty if nothing is."""
        step, slot = TaskStep(task_id=request.task_id, spec=request.spec), self._slot
        seek = HostStep(task_id=request.task_id, host=slot.host, moves=False)
        for looks in itertools.count():
            chosen = options.clearing(slot, min(looks, _MOST_LOOKS))
            try:
                await despite_cancellation(lambda chosen=chosen: workflow.execute_activity(stubs.clear_task, step, **chosen))
            except ActivityError as error:
                if not is_not_taken(error):
                    return f"What it left on the host {slot.host!r} could not be cleared up yet, and is tried again: {error.cause}"
            else:
                return ""
            if (await despite_cancellation(lambda: found_host(seek))).host != slot.host:
                break
        return f"The host {slot.host!r} is away: what is left of it there goes when that is started."


def _request_of(given: JsonValue, surplus: Sequence[JsonValue]) -> MakeRequest:
    """The request from plain JSON. Invalid input fails the workflow at once."""
    request = input_of(MakeRequest, given, surplus)
    # The id names folders, rows and the agent, so it must be the workflow's own.
    if request.task_id != workflow.info().workflow_id or not is_making(request.task_id):
        own = f"the workflow's own id ({workflow.info().workflow_id!r}), and of the form {TASK_ID_PATTERN}"
        raise ApplicationError(f"task_id: {request.task_id[:128]!r} must be {own}.", non_retryable=True)
    return request


def _stub_of(name: making.Activity) -> Callable[[Any], Awaitable[making.Answer]]:
    match name:
        case "inspect_task":
            return stubs.inspect_task
        case "diagnose":
            return stubs.diagnose
        case "build_candidate":
            return stubs.build_candidate
        case "lay_out":
            return stubs.lay_out
        case "brief_agent":
            return stubs.brief_agent
        case "verify_candidate":
            return stubs.verify_candidate
        case "register_candidate":
            return stubs.register_candidate


def _ended_by(request: MakeRequest, error: BaseException) -> EndStep:
    # A step that fails while it is cancelled, or whose worker dies then, ends like any failed step; so does its agent.
    if is_cancelled_exception(error) or workflow.cancellation_reason() is not None:
        return EndStep(request=request, status=TaskState.CANCELLED, reason="It was cancelled.")
    cause: BaseException = error
    # The error of an agent's step is nested twice.
    while isinstance(cause, ActivityError | ChildWorkflowError) and cause.cause is not None:
        cause = cause.cause
    message = cause.message if isinstance(cause, ApplicationError) else str(cause)
    return EndStep(request=request, status=TaskState.FAILED, reason=message or type(cause).__name__)
