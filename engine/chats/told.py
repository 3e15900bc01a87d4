"""What a model is told first about a message of a chat: made anew of the archive whenever it is needed, since that does not change."""

from engine.store.chats import AskedAbout, ChatTable
from toolagent_service.agents import service

_READ = 100
"""Turns of a chat that are looked at; those before are only counted."""


async def told_first(chats: ChatTable, asked: AskedAbout) -> str:
    """The conversation so far, and the message. Raises StoreUnavailableError."""
    earlier = [said for said in await chats.said_before(asked.chat_id, asked.number, _READ) if said.text]
    return service.opening(asked.text, earlier, older=max(asked.number - 1 - _READ, 0))


async def told_in(chats: ChatTable, conversation_id: str) -> str | None:
    """The same of a conversation with a model; None where its chat was deleted."""
    asked = await chats.asked(conversation_id)
    return await told_first(chats, asked) if asked is not None else None
