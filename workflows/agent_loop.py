"""A run of an agent of any role: carries out the steps of `toolagent_service.agents.loop`, and keeps its state.

An `if` about agents belongs in the loop, one about a role in its rules. Each role knows how its steps reach a host.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, RetryState, TimeoutError, TimeoutType, is_cancelled_exception

from toolagent.contracts.making import Guidance
from toolagent_service.agents import loop
from toolagent_service.contracts.agent import AgentRequest, AgentResult, LoopState, ModelAsk, ModelTurnNote, ToolNote, ToolRun
from workflows.cancelling import raise_if_cancelled


class AgentLoop:
    """`ask` runs a turn of the model in the time that is `left`, and raises ActivityError; `use` runs a tool.

    `whole`: the agent ends in the run of the workflow in which it began.
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
        """The state that a query returns."""

    async def result(self) -> AgentResult | AgentRequest:
        """The agent's result; if the history of this run is long, the request for the next run."""
        while True:
            # A step that ended as it was cancelled has an answer.
            raise_if_cancelled()
            if not self._whole and self._is_long():
                await workflow.wait_condition(workflow.all_handlers_finished)
                return self._request.model_copy(update={"resume_from": self.state})
            match loop.next_step(self._request, self.state, workflow.now().timestamp(), self._rules.limits):
                case loop.AskModel(ask=ask):
                    await self._asked(ask)
                case loop.RunTools(allowed=allowed, refused=refused):
                    self.state = loop.after_tools(self.state, refused)
                    # One at a time, because a tool may end the run.
                    if allowed:
                        note = await self._use(allowed[0])
                        # The current state, because guidance may have come meanwhile.
                        self.state = loop.after_tools(self.state, (note,))
                case loop.Finish(result=result):
                    return result

    def left(self) -> timedelta:
        """The rest of the agent's time, by the workflow's clock; at least a second."""
        over_s = self.state.started_s + self._request.limits.wall_s - workflow.now().timestamp()
        return timedelta(seconds=max(over_s, 1))

    def hear(self, guidance: Guidance) -> None:
        """Take guidance; ignored if the agent cannot take it now."""
        if loop.refusal_of(self.state) is None:
            self.state = loop.with_guidance(self.state, guidance)

    async def _asked(self, ask: ModelAsk) -> None:
        try:
            note = await self._ask(ask)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            # If it failed because the workflow is cancelled, `result` sees the cancellation first.
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
        # Far below the server's limit of events, it is also below the limit of bytes.
        return info.is_continue_as_new_suggested() or info.get_current_history_length() >= self._request.limits.events


def _is_over(error: ActivityError) -> bool:
    """Whether the time is over, also if only the pause before another attempt would exceed it."""
    cause = error.cause
    return error.retry_state is RetryState.TIMEOUT or (isinstance(cause, TimeoutError) and cause.type is TimeoutType.SCHEDULE_TO_CLOSE)
