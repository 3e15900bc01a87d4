"""Messages that chats send on their own, across all chats."""

from datetime import datetime

from sqlalchemy import select

from engine.store.chat_tables import chat_turns, chats
from engine.store.clock import timestamp
from engine.store.database import DatabaseAccess
from toolagent.contracts.chats import ChatRole
from toolagent.core.chats import task_message_id

_PREFIX = task_message_id("")


class ChatSayings(DatabaseAccess):
    """All raise StoreUnavailableError."""

    async def since(self, at: datetime) -> tuple[tuple[str, str, str, datetime], ...]:
        """Chat id, message id, text and time of the messages since then, the oldest first."""
        query = (
            select(chat_turns.c.chat_id, chat_turns.c.message_id, chat_turns.c.text, chat_turns.c.at)
            .join(chats, chats.c.chat_id == chat_turns.c.chat_id)
            # Uses the index: most chats are silent.
            .where(chats.c.updated_at >= timestamp(at))
            .where(chat_turns.c.at >= timestamp(at), chat_turns.c.role == ChatRole.ASSISTANT.value)
            .where(chat_turns.c.message_id.startswith(_PREFIX, autoescape=True))
            .order_by(chat_turns.c.at, chat_turns.c.chat_id, chat_turns.c.message_id)
        )
        rows = await self._database.rows(query)
        return tuple((chat_id, message_id, text, datetime.fromisoformat(written)) for chat_id, message_id, text, written in rows)
