"""The workflow of a librarian."""

from datetime import timedelta

from temporalio import workflow

from tests.activities.second_role.rules import RULES
from toolagent_service import stubs
from toolagent_service.contracts.agent import AgentRequest, AgentResult, ModelAsk, ModelTurnNote, ToolNote, ToolRun
from workflows.agent_loop import AgentLoop

__all__ = ["LibraryDesk"]

_STEP = timedelta(seconds=30)


@workflow.defn
class LibraryDesk:
    @workflow.run
    async def run(self, request: AgentRequest) -> AgentResult:
        agent = AgentLoop(RULES, request, ask, use)
        result = await agent.result()
        if isinstance(result, AgentRequest):
            workflow.continue_as_new(result)
        return result


async def ask(step: ModelAsk) -> ModelTurnNote:
    return await workflow.execute_activity(stubs.ask_model, step, start_to_close_timeout=_STEP)


async def use(step: ToolRun) -> ToolNote:
    return await workflow.execute_activity(stubs.use_tool, step, start_to_close_timeout=_STEP)
