"""Answers messages of agents, and begins the tasks that they ask for."""

import uuid

from api import chats
from api.errors import bad_field
from api.making import submitted_task
from api.ports import Dependencies
from api.problems import ProblemKind
from api.reading.bodies import AgentChatBody
from api.reading.chat_bodies import ChatBody
from engine.concierge.solutions import suggested
from toolagent.contracts.agent_chat import AgentAnswer
from toolagent.contracts.making import MakeRequest
from toolagent.core.chats import message_id_for
from toolagent.core.task_requests import request_key
from toolagent_service.contracts.concierge import Intent, Language, Reply

_MENTIONED: dict[Language, str] = {"en": "The answer names it.", "zh": "回答中提到了它。"}
_GO_ON: dict[Language, str] = {
    "en": "POST /chat with chat_id {chat_id} goes on from here",
    "zh": "使用 POST /chat 和 chat_id {chat_id} 继续对话",
}

_READ = ("task", "requirements")
"""The fields of the context that are read, here and by the rules of the concierge."""


async def answered(dependencies: Dependencies, said: AgentChatBody, key: str | None) -> AgentAnswer:
    """Answers by rules. If the rules do not decide and there is a model, asks the model. Raises as `submitted_task`, and Refusal."""
    reply = await dependencies.concierge.answer(said.message, said.context)
    if not reply.is_decided and dependencies.has_model:
        return await _conversed(dependencies, said, key, reply.language)
    if reply.task is None:
        return reply.answer()
    request = MakeRequest(
        task_id="",
        spec=reply.task,
        description=reply.description,
        caller=said.caller,
        key=request_key(said.caller.caller_id, key),
    )
    task = await submitted_task(dependencies, request, is_named=False)
    return reply.about_task(task.task_id, task.status).answer()


async def _conversed(dependencies: Dependencies, said: AgentChatBody, key: str | None, language: Language) -> AgentAnswer:
    """The answer to the first message of a new chat. The same key is the same chat."""
    key = key if key is not None else uuid.uuid4().hex
    chat_id = f"agent-{message_id_for(said.caller.caller_id or '', key)}"
    message = _whole(dependencies, said)
    reply = await chats.answered(dependencies, ChatBody(message=message, chat_id=chat_id), key)
    tools = [tool for tool_id in reply.tools if (tool := await dependencies.registry.get(tool_id)) is not None]
    answer = Reply(
        reply=reply.response,
        tools=tuple(suggested(tool, _MENTIONED[language]) for tool in tools),
        next_steps=(_GO_ON[language].format(chat_id=chat_id),),
        answered_by=reply.answered_by.value,
        intent=Intent.UNDECIDED,
        language=language,
    )
    task = await dependencies.tasks.get(reply.task_ids[0]) if reply.task_ids else None
    if task is not None:
        took = await dependencies.concierge.usual_time(task.spec, language)
        answer = answer.about_task(task.task_id, task.status).model_copy(update={"estimated_time": took})
    return answer.answer()


def _whole(dependencies: Dependencies, said: AgentChatBody) -> str:
    """The message with the texts of its context. Raises Refusal if the context makes the message too large."""
    texts = [said.message, *(text for name in _READ if isinstance(text := said.context.get(name), str))]
    whole = "\n\n".join(text.strip() for text in texts if text.strip())
    most, size = dependencies.limits.max_message_bytes, len(whole.encode())
    if len(said.message.encode()) <= most < size:
        told = f"With `task` and `requirements` the message has {size} bytes; it may have at most {most} (TOOL_AGENT_CHAT_MESSAGE_BYTES)."
        raise bad_field("context", told, ProblemKind.BODY_TOO_LARGE)
    return whole
