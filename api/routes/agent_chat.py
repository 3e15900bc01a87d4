"""Requests of agents in plain words."""

from fastapi import APIRouter

from api.agent_chat import answered
from api.documentation import JSON_BODY, problem_responses
from api.making import Key
from api.ports import Injected
from api.problems import ProblemKind
from api.reading.bodies import AgentChatBody
from api.reading.strict_json import StrictRoute
from toolagent.contracts.agent_chat import AgentAnswer
from toolagent.contracts.calls import ErrorType

router = APIRouter(tags=["tools"], route_class=StrictRoute)


@router.post(
    "/agent/chat",
    summary="Say in plain words what is needed",
    responses=problem_responses(*JSON_BODY, ProblemKind.IDEMPOTENCY_CONFLICT, ProblemKind.REPAIR_RUNNING, ErrorType.UNAVAILABLE),
)
async def agent_chat(said: AgentChatBody, dependencies: Injected, idempotency_key: Key = None) -> AgentAnswer:
    """Which tools there are, how they are used, how far a task is; a clear wish for a tool is submitted, as by `/create_tool`.

    Chinese is answered in Chinese, anything else in English. Each message stands alone. A repeated wish is one task under the same key.
    """
    return await answered(dependencies, said, idempotency_key)
