"""An answer that is written down with the turn of the model that it is: one transaction instead of two."""

from collections.abc import Callable, Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.chat_rows import reply_of
from engine.store.chats import ChatTable
from engine.tasks.transcript import Also, AlsoWritten
from toolagent.contracts.chats import ChatReply, ChatTurn, Chunk
from toolagent_service.agents.loop import is_answer
from toolagent_service.agents.service import SERVICE
from toolagent_service.contracts.agent import ModelTurnNote
from toolagent_service.contracts.model import ModelTurn


class Answering(AlsoWritten):
    """Of one message of a chat, by one attempt. `answer` makes the answer of a turn."""

    def __init__(self, chats: ChatTable, chat_id: str, answer: Callable[[ModelTurn], ChatTurn]) -> None:
        self._chats, self._chat_id, self._answer = chats, chat_id, answer
        self.reply: ChatReply | None = None
        """What was written; None where another attempt wrote it, or it could not be."""

    def __call__(self, note: ModelTurnNote, turn: ModelTurn, unheard: Sequence[Chunk]) -> Also | None:
        async def write(connection: AsyncConnection) -> None:
            self.reply = reply_of(self._chat_id, await self._chats.answer_within(connection, self._chat_id, self._answer(turn), unheard))

        return write if is_answer(SERVICE, note) else None

    def undone(self) -> None:
        self.reply = None
