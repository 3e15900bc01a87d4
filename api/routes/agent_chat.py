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
    """Answers questions about tools and tasks. A clear request for a tool is submitted, as by `/create_tool`.

    Chinese messages are answered in Chinese, others in English. Each message stands alone. The same key is the same task.
    """
    return await answered(dependencies, said, idempotency_key)
