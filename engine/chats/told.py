"""What a model is told first about a message of a chat: made anew of the archive whenever it is needed, since that does not change."""

from engine.store.chats import ChatTable
from toolagent_service.agents import service

_READ = 100
"""Turns of a chat that are looked at; those before are only counted."""


_KEPT = 256
"""Chats whose model is to be asked at this moment."""


class Told:
    """Kept from the beginning of a turn until its model is asked, which is mostly a moment later in the same process."""

    def __init__(self, chats: ChatTable) -> None:
        self._chats = chats
        self._kept: dict[str, str] = {}

    async def begun(self, conversation_id: str) -> str | None:
        """As the turn begins: what was said before, and the message that the conversation is about; None where its chat was deleted."""
        told = await self._read(conversation_id)
        if told is not None:
            self._kept[conversation_id] = told
            if len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        return told

    async def asked(self, conversation_id: str) -> str | None:
        """The same as its model is asked."""
        return self._kept.pop(conversation_id, None) or await self._read(conversation_id)

    async def _read(self, conversation_id: str) -> str | None:
        turns = await self._chats.said_until(conversation_id, _READ)
        if not turns:
            return None
        asked = turns[-1]
        return service.opening(asked.text, [turn for turn in turns[:-1] if turn.text], older=max(asked.number - 1 - _READ, 0))
