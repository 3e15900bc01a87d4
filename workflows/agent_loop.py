"""A run of an agent of any role: the workflow of a role does what `toolagent_service.agents.loop` asks for, and keeps what came of it.

An `if` about agents belongs in the loop; one about a role in its rules. How a step reaches the host that does it is the role's own.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, RetryState, TimeoutError, TimeoutType, is_cancelled_exception

from toolagent.contracts.making import Guidance
from toolagent_service.agents import loop
from toolagent_service.contracts.agent import AgentRequest, AgentResult, LoopState, ModelAsk, ModelTurnNote, ToolNote, ToolRun


class AgentLoop:
    """`ask` has a turn of the model, in the time that is `left`, and raises ActivityError; `use` has a tool used.

    `whole`: it ends in the run of the workflow that it began in, which waits for it.
    """

    def __init__(
        self,
        rules: loop.Rules,
        request: AgentRequest,
        ask: Callable[[ModelAsk], Awaitable[ModelTurnNote]],
        use: Callable[[ToolRun], Awaitable[ToolNote]],
        *,
        whole: bool = False,
    ) -> None:
        self._rules, self._request, self._ask, self._use, self._whole = rules, request, ask, use, whole
        self.state: LoopState = loop.begin(request, workflow.now().timestamp())
        """What a query tells."""

    async def result(self) -> AgentResult | AgentRequest:
        """How it ended; or, when the history of this run is long, what another run goes on from."""
        while True:
            # A step that was done when it was to be cancelled has an answer all the same.
            if workflow.cancellation_reason() is not None:
                raise asyncio.CancelledError
            if not self._whole and self._is_long():
                await workflow.wait_condition(workflow.all_handlers_finished)
                return self._request.model_copy(update={"resume_from": self.state})
            match loop.next_step(self._request, self.state, workflow.now().timestamp(), self._rules.limits):
                case loop.AskModel(ask=ask):
                    await self._asked(ask)
                case loop.RunTools(allowed=allowed, refused=refused):
                    self.state = loop.after_tools(self.state, refused)
                    # One at a time: what comes of it may be the end.
                    if allowed:
                        note = await self._use(allowed[0])
                        # The state of now: somebody may have said something meanwhile.
                        self.state = loop.after_tools(self.state, (note,))
                case loop.Finish(result=result):
                    return result

    def left(self) -> timedelta:
        """Of the agent's time, by the workflow's clock; at least a second."""
        over_s = self.state.started_s + self._request.limits.wall_s - workflow.now().timestamp()
        return timedelta(seconds=max(over_s, 1))

    def hear(self, guidance: Guidance) -> None:
        """What cannot be taken now is passed over."""
        if loop.refusal_of(self.state) is None:
            self.state = loop.with_guidance(self.state, guidance)

    async def _asked(self, ask: ModelAsk) -> None:
        try:
            note = await self._ask(ask)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            # One that fails when it is told to stop is no end of the agent's own: `result` looks for that first.
            self.state = self._unanswered(error)
        else:
            self.state = loop.after_model(self._rules, self.state, ask, note)
            workflow.set_current_details(f"{self.state.turns} turns, {self.state.tokens:,} tokens, ${self.state.cost_usd:.4f}")

    def _unanswered(self, error: ActivityError) -> LoopState:
        cause = error.cause
        said = cause.cause if isinstance(cause, TimeoutError) else cause
        told = said.message if isinstance(said, ApplicationError) else ""
        if _is_over(error):
            return loop.out_of_time(self._request, self.state, told, self._rules.limits)
        kind = next(iter(said.details), "") if isinstance(said, ApplicationError) else ""
        return loop.unanswered(self.state, told or f"The model could not be asked: {cause or error}", str(kind))

    def _is_long(self) -> bool:
        info = workflow.info()
        # Well below what the server allows in events it is below that in bytes too.
        return info.is_continue_as_new_suggested() or info.get_current_history_length() >= self._request.limits.events


def _is_over(error: ActivityError) -> bool:
    """Whether the time was over, also when only the pause before another attempt would not have fitted in."""
    cause = error.cause
    return error.retry_state is RetryState.TIMEOUT or (isinstance(cause, TimeoutError) and cause.type is TimeoutType.SCHEDULE_TO_CLOSE)
