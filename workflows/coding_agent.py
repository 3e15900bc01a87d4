"""One run of the coding agent, from its task to a candidate or to the reason why there is none.

The workflow does what `toolagent.core.loop` asks for and remembers what came of it. An `if` about agents belongs in the loop.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, RetryState, TimeoutError, TimeoutType, is_cancelled_exception

from toolagent.client import names, stubs
from toolagent.contracts.agent import AgentRequest, AgentResult, LoopState, ModelAsk, ToolRun
from toolagent.contracts.making_steps import AgentStart, HostStep, Slot
from toolagent.core import loop
from workflows import making_options as options
from workflows.inputs import guidance_of, input_of, insist_on_host
from workflows.lost_hosts import HostLost, on_host

__all__ = ["CodingAgent"]

S = TypeVar("S")
R = TypeVar("R")


_NOTHING = AgentStart(request=AgentRequest(task_id="", prompt=""), slot=Slot(host=""))


@workflow.defn(name=names.CODING_AGENT)
class CodingAgent:
    @workflow.init
    def __init__(self, given: JsonValue = None, *surplus: JsonValue) -> None:
        """Takes an `AgentStart` as plain JSON; what is none fails at once."""
        # Raised here, it would leave the `run` that never begins unawaited.
        self._fault: ApplicationError | None = None
        try:
            start = input_of(AgentStart, given, surplus)
            insist_on_host(start.slot.host)
        except ApplicationError as fault:
            start, self._fault = _NOTHING, fault
        self._start = start
        self._request, self._slot = start.request, start.slot
        self._state = loop.begin(start.request, workflow.now().timestamp())

    @workflow.run
    async def run(self, _given: JsonValue = None, *_surplus: JsonValue) -> AgentResult:
        if self._fault is not None:
            raise self._fault
        return await self._worked()

    async def _worked(self) -> AgentResult:
        while True:
            # A step that was done when it was to be cancelled has an answer all the same.
            if workflow.cancellation_reason() is not None:
                raise asyncio.CancelledError
            if self._is_long():
                await workflow.wait_condition(workflow.all_handlers_finished)
                request = self._request.model_copy(update={"resume_from": self._state})
                workflow.continue_as_new(self._start.model_copy(update={"request": request}))
            match loop.next_step(self._request, self._state, workflow.now().timestamp()):
                case loop.AskModel(ask=ask):
                    await self._ask(ask)
                case loop.RunTools(allowed=allowed, refused=refused):
                    self._state = loop.after_tools(self._state, refused)
                    # One at a time: what comes of it may be the end.
                    if allowed:
                        await self._use(allowed[0])
                case loop.Finish(result=result):
                    return result

    @workflow.signal(name=names.GUIDE)
    def guide(self, *given: JsonValue) -> None:
        """Takes a `Guidance` as plain JSON."""
        guidance = guidance_of(given)
        if guidance is not None and loop.refusal_of(self._state) is None:
            self._state = loop.with_guidance(self._state, guidance)

    @workflow.query(name=names.PROGRESS)
    def progress(self) -> LoopState:
        return self._state

    async def _ask(self, ask: ModelAsk) -> None:
        def chosen() -> options.MakingOptions:
            over_s = self._state.started_s + self._request.limits.wall_s - workflow.now().timestamp()
            return options.ask_model(self._slot, ask.turn, timedelta(seconds=max(over_s, 1)))

        try:
            note = await self._on_host(stubs.ask_model, ask, chosen)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            # One that fails when it is told to stop is no end of the agent's own: `run` looks for that first.
            self._state = self._unanswered(error)
        else:
            self._state = loop.after_model(self._state, ask, note)
            workflow.set_current_details(f"{self._state.turns} turns, {self._state.tokens:,} tokens, ${self._state.cost_usd:.4f}")

    def _unanswered(self, error: ActivityError) -> LoopState:
        cause = error.cause
        said = cause.cause if isinstance(cause, TimeoutError) else cause
        told = said.message if isinstance(said, ApplicationError) else ""
        if _is_over(error):
            return loop.out_of_time(self._request, self._state, told)
        kind = next(iter(said.details), "") if isinstance(said, ApplicationError) else ""
        return loop.unanswered(self._state, told or f"The model could not be asked: {cause or error}", str(kind))

    async def _use(self, run: ToolRun) -> None:
        note = await self._on_host(stubs.use_tool, run, lambda: options.use_tool(self._slot, run.summary))
        self._state = loop.after_tools(self._state, (note,))

    async def _on_host(self, stub: Callable[[S], Awaitable[R]], step: S, chosen: Callable[[], options.MakingOptions]) -> R:
        try:
            return await on_host(stub, step, chosen, HostStep(task_id=self._request.task_id, host=self._slot.host, moves=False))
        except HostLost as lost:
            raise ApplicationError(str(lost), type=names.HOST_LOST, non_retryable=True) from None

    def _is_long(self) -> bool:
        info = workflow.info()
        # Well below what the server allows in events it is below that in bytes too.
        return info.is_continue_as_new_suggested() or info.get_current_history_length() >= self._request.limits.events


def _is_over(error: ActivityError) -> bool:
    """Whether the time was over, also when only the pause before another attempt would not have fitted in."""
    cause = error.cause
    return error.retry_state is RetryState.TIMEOUT or (isinstance(cause, TimeoutError) and cause.type is TimeoutType.SCHEDULE_TO_CLOSE)
