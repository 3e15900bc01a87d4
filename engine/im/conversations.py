"""The service's conversations, as the windows need them: what answers, and what is said without being asked."""

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
"""What was written down so long ago may only be committed now, or by a host whose clock is behind."""


class Chats(Protocol):
    """`toolagent.client.chats.Chats` is one."""

    async def say(self, message: ChatMessage) -> ChatReply: ...


class ConversationAnswers:
    """Keeps `Answering`: the conversation writes messages and answers down, each once for its id.

    `passing` is the type of those refusals that pass.
    """

    def __init__(self, chats: Chats, max_message_bytes: int, passing: str) -> None:
        self._chats, self._max_message_bytes, self._passing = chats, max_message_bytes, passing

    async def answer(self, chat_id: str, message_id: str, text: str) -> str:
        """Raises Unanswerable, and ChatUnreachableError and ChatRefusedError when it is to be asked again."""
        if (size := len(text.encode())) > self._max_message_bytes:
            raise Unanswerable(f"content: It has {size} bytes; a message may have at most {self._max_message_bytes}. Shorten it.")
        try:
            return (await self._chats.say(ChatMessage(chat_id=chat_id, message=text, message_id=message_id))).response
        except ChatRefusedError as refused:
            if refused.type == self._passing:
                raise
            raise Unanswerable(f"The chat could not answer: {refused}") from refused


class ConversationNotices:
    """Keeps `Notices`. A position is a time; what is found in the overlap is told once by each stream."""

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
            # Hours without a notice must not make the look ever longer.
            since = max(since, looked_at)
            told = {name: at for name, at in told.items() if at >= since - 2 * _OVERLAP}
            await asyncio.sleep(self._look_s)
