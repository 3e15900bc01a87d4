"""From what an agent says to an answer, and to the task that it asks for."""

from api.making import submitted_task
from api.ports import Dependencies
from api.reading.bodies import AgentChatBody
from toolagent.contracts.agent_chat import AgentAnswer
from toolagent.contracts.making import MakeRequest
from toolagent.core.task_requests import request_key


async def answered(dependencies: Dependencies, said: AgentChatBody, key: str | None) -> AgentAnswer:
    """By rules; by a model what they do not decide, where there is one. Raises as `submitted_task`."""
    reply = await dependencies.concierge.answer(said.message, said.context)
    if not reply.is_decided and dependencies.adviser:
        return await dependencies.adviser.advise(said.message, said.context)
    if reply.task is None:
        return reply.answer()
    request = MakeRequest(
        task_id="",
        spec=reply.task,
        description=reply.description,
        caller=said.caller,
        key=request_key(said.caller.caller_id, key),
    )
    task = await submitted_task(dependencies, request)
    return reply.about_task(task.task_id, task.status).answer()
