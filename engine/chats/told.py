"""What a model is told first about a message of a chat: made anew of the archive whenever it is needed, since that does not change."""

from engine.store.chats import ChatTable
from toolagent_service.agents import service

_READ = 100
"""Turns of a chat that are looked at; those before are only counted."""


async def told_in(chats: ChatTable, conversation_id: str) -> str | None:
    """What was said before, and the message that the conversation is about; None where its chat was deleted."""
    turns = await chats.said_until(conversation_id, _READ)
    if not turns:
        return None
    asked = turns[-1]
    return service.opening(asked.text, [turn for turn in turns[:-1] if turn.text], older=max(asked.number - 1 - _READ, 0))
