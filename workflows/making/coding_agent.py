"""One run of the coding agent, from its task to a candidate or to the reason why there is none."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from pydantic import JsonValue
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from toolagent.client import names
from toolagent.contracts.making import Guidance
from toolagent_service import step_names, stubs
from toolagent_service.agents.coding import CODING
from toolagent_service.contracts.agent import AgentRequest, AgentResult, LoopState, ModelAsk, ModelTurnNote, ToolNote, ToolRun
from toolagent_service.contracts.making_steps import AgentStart, HostStep, Slot
from workflows import making_options as options
from workflows.agent_loop import AgentLoop
from workflows.inputs import input_of, require_host, told_of
from workflows.lost_hosts import HostLost, on_host
from workflows.options import ActivityOptions

S = TypeVar("S")
R = TypeVar("R")


_NOTHING = AgentStart(request=AgentRequest(conversation_id="", prompt=""), slot=Slot(host=""))


@workflow.defn(name=names.CODING_AGENT)
class CodingAgent:
    @workflow.init
    def __init__(self, given: JsonValue = None, *surplus: JsonValue) -> None:
        """Takes an `AgentStart` as plain JSON; invalid input fails at once."""
        # Raised here, the error would leave the coroutine of `run` unawaited.
        self._fault: ApplicationError | None = None
        try:
            start = input_of(AgentStart, given, surplus)
            require_host(start.slot.host)
        except ApplicationError as fault:
            start, self._fault = _NOTHING, fault
        self._start = start
        self._agent = AgentLoop(CODING, start.request, self._ask, self._use)

    @workflow.run
    async def run(self, _given: JsonValue = None, *_surplus: JsonValue) -> AgentResult:
        if self._fault is not None:
            raise self._fault
        result = await self._agent.result()
        if isinstance(result, AgentRequest):
            workflow.continue_as_new(self._start.model_copy(update={"request": result}))
        return result

    @workflow.signal(name=names.GUIDE)
    def guide(self, *given: JsonValue) -> None:
        """Takes a `Guidance` as plain JSON."""
        if (guidance := told_of(Guidance, given)) is not None:
            self._agent.hear(guidance)

    @workflow.query(name=names.PROGRESS)
    def progress(self) -> LoopState:
        return self._agent.state

    async def _ask(self, ask: ModelAsk) -> ModelTurnNote:
        return await self._on_host(stubs.ask_model, ask, lambda: options.ask_model(self._start.slot, ask.turn, self._agent.left()))

    async def _use(self, run: ToolRun) -> ToolNote:
        return await self._on_host(stubs.use_tool, run, lambda: options.use_tool(self._start.slot, run.summary))

    async def _on_host(self, stub: Callable[[S], Awaitable[R]], step: S, chosen: Callable[[], ActivityOptions]) -> R:
        """Run a step on the host that has the files of the task."""
        seek = HostStep(task_id=self._start.request.conversation_id, host=self._start.slot.host, moves=False)
        try:
            return await on_host(stub, step, chosen, seek)
        except HostLost as lost:
            raise ApplicationError(str(lost), type=step_names.HOST_LOST, non_retryable=True) from None
