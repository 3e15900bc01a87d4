"""One run of the coding agent, from its task to a candidate or to the reason why there is none.

The workflow does what `toolagent.core.loop` asks for and remembers what came of it. An `if` about agents belongs in the loop.
"""

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from toolagent.client import names, stubs
from toolagent.contracts.agent import AgentEnd, AgentRequest, AgentResult, Guidance, LoopState, ModelAsk, ToolRun
from toolagent.core import loop
from workflows import making_options as options

__all__ = ["CodingAgent"]

_MOST_EVENTS = 4_000
"""Of a history: a tenth of what the server allows, so that it stays well below its limits in bytes too."""


@workflow.defn(name=names.CODING_AGENT)
class CodingAgent:
    @workflow.init
    def __init__(self, request: AgentRequest, host: str) -> None:
        self._request, self._host = request, host
        self._state = loop.begin(request, workflow.now().timestamp())

    @workflow.run
    async def run(self, request: AgentRequest, host: str) -> AgentResult:
        while True:
            if self._is_long():
                await workflow.wait_condition(workflow.all_handlers_finished)
                workflow.continue_as_new(args=[request.model_copy(update={"resume_from": self._state}), host])
            match loop.next_step(request, self._state, workflow.now().timestamp()):
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
    def guide(self, guidance: Guidance) -> None:
        if loop.refusal_of(self._state) is None:
            self._state = loop.with_guidance(self._state, guidance)

    @workflow.query(name=names.PROGRESS)
    def progress(self) -> LoopState:
        return self._state

    async def _ask(self, ask: ModelAsk) -> None:
        over_s = self._state.started_s + self._request.limits.wall_s - workflow.now().timestamp()
        patience = timedelta(seconds=max(over_s, 1))
        try:
            note = await workflow.execute_activity(stubs.ask_model, ask, **options.ask_model(self._host, ask.turn, patience))
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            self._state = loop.ended(self._state, AgentEnd.MODEL, _why(error))
        else:
            self._state = loop.after_model(self._state, ask, note)

    async def _use(self, run: ToolRun) -> None:
        note = await workflow.execute_activity(stubs.use_tool, run, **options.use_tool(self._host, run.summary))
        self._state = loop.after_tools(self._state, (note,))

    def _is_long(self) -> bool:
        info = workflow.info()
        return info.is_continue_as_new_suggested() or info.get_current_history_length() >= _MOST_EVENTS


def _why(error: ActivityError) -> str:
    cause = error.cause
    if isinstance(cause, ApplicationError):
        return cause.message
    return f"The model could not be asked: {cause or error}"
