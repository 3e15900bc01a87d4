"""Answers in conversations on this host."""

from temporalio.client import Client

from activities.agents.models import Models
from activities.agents.opening import Openings
from activities.agents.service import ServiceRole
from engine.chats.conversations import ChatParts, Conversations
from engine.chats.desk import Tables
from engine.chats.submissions import Submissions
from engine.chats.told import Told
from toolagent.client.making import Making
from toolagent.contracts.task_specs import MakeLimits
from toolagent_service.agents.model_cost import limits_for
from toolagent_service.contracts.agent import AgentLimits, AgentRequest
from workers.settings.chats import ChatSettings
from workers.storage import Store

_PROMPT = "service"


def chats_of(store: Store, settings: ChatSettings, client: Client, models: Models, openings: Openings) -> tuple[ServiceRole, Conversations]:
    """The role of the model in conversations, and the conversations themselves."""
    submissions = Submissions(Making(client), store.tasks, store.registry)
    tables = Tables(store.matching, store.registry, store.groups, store.routes, store.tasks, store.notes, submissions)
    told = Told(store.chats)
    role = ServiceRole(tables, store.chats, told.asked)

    async def requested(conversation_id: str) -> AgentRequest:
        allowed = AgentLimits(
            turns=settings.chat_turns,
            wall_s=settings.chat_wall_s,
            tokens=settings.chat_tokens,
            cost_usd=settings.chat_limit_usd,
            turn_tokens=4_096,
        )
        limits = limits_for(MakeLimits(), allowed, openings.price())
        # None if the chat was deleted meanwhile: the step that asks the model sees that too, and refuses.
        return await openings.request(conversation_id, await told.begun(conversation_id) or "", role, _PROMPT, limits)

    parts = ChatParts(store.chats, store.messages, store.tasks, submissions, store.concierge)
    return role, Conversations(parts, requested if models.provider is not None else None, settings.chat_idle_s)
