"""Connects the windows to the chats of the service: their answers, and their notices."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Protocol

from engine.im.answering import Unanswerable
from engine.im.notices import Notice
from engine.store.chat_sayings import ChatSayings
from toolagent.client.failures import ChatRefusedError
from toolagent.contracts.chats import ChatMessage, ChatReply

_LOOK_S = 1.0
_OVERLAP = timedelta(seconds=60)
"""A notice may be committed so late, or by a host whose clock is so far behind."""


class Chats(Protocol):
    """`toolagent.client.chats.Chats` is one."""

    async def say(self, message: ChatMessage) -> ChatReply: ...


class ConversationAnswers:
    """An `Answering`: chats record messages and answers, each once for its id. `passing` is the type of temporary refusals."""

    def __init__(self, chats: Chats, max_message_bytes: int, passing: str) -> None:
        self._chats, self._max_message_bytes, self._passing = chats, max_message_bytes, passing

    async def answer(self, chat_id: str, message_id: str, text: str) -> str:
        """Raises Unanswerable; ChatUnreachableError and ChatRefusedError if another attempt may succeed."""
        if (size := len(text.encode())) > self._max_message_bytes:
            raise Unanswerable(f"content: It has {size} bytes; a message may have at most {self._max_message_bytes}. Shorten it.")
        try:
            return (await self._chats.say(ChatMessage(chat_id=chat_id, message=text, message_id=message_id))).response
        except ChatRefusedError as refused:
            if refused.type == self._passing:
                raise
            raise Unanswerable(f"The chat could not answer: {refused}") from refused


class ConversationNotices:
    """A `Notices` whose positions are times. Each stream tells a notice of the overlap once."""

    def __init__(self, sayings: ChatSayings, look_s: float = _LOOK_S) -> None:
        self._sayings, self._look_s = sayings, look_s

    async def latest(self) -> str:
        return datetime.now(UTC).isoformat()

    async def after(self, position: str) -> AsyncIterator[Notice]:
        """Raises StoreUnavailableError."""
        since = datetime.fromisoformat(position)
        told: dict[tuple[str, str], datetime] = {}
        while True:
            looked_at = datetime.now(UTC)
            for chat_id, key, text, at in await self._sayings.since(since - _OVERLAP):
                if (chat_id, key) not in told:
                    told[chat_id, key] = at
                    yield Notice(chat_id, key, text, at.isoformat())
            # The range of the query must not grow while there are no notices.
            since = max(since, looked_at)
            told = {name: at for name, at in told.items() if at >= since - 2 * _OVERLAP}
            await asyncio.sleep(self._look_s)
