"""The first message to a model about a message of a chat.

It is derived from the archive, which does not change.
"""

from engine.store.chats import ChatTable
from toolagent_service.agents import service

_READ = 100
"""Turns of a chat that are read; earlier ones are only counted."""


_KEPT = 256
"""Openings that are cached at once."""


class Told:
    """Caches each opening until the model is asked, mostly a moment later in the same process."""

    def __init__(self, chats: ChatTable) -> None:
        self._chats = chats
        self._kept: dict[str, str] = {}

    async def begun(self, conversation_id: str) -> str | None:
        """The opening at the beginning of a turn: the message, and what was said before; None if the chat was deleted."""
        told = await self._read(conversation_id)
        if told is not None:
            self._kept[conversation_id] = told
            if len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        return told

    async def asked(self, conversation_id: str) -> str | None:
        """The same opening, when the model is asked."""
        return self._kept.pop(conversation_id, None) or await self._read(conversation_id)

    async def _read(self, conversation_id: str) -> str | None:
        turns = await self._chats.said_until(conversation_id, _READ)
        if not turns:
            return None
        asked = turns[-1]
        return service.opening(asked.text, [turn for turn in turns[:-1] if turn.text], older=max(asked.number - 1 - _READ, 0))
