"""An answer that is written down with the turn of the model that it is: one transaction instead of two."""

from collections.abc import Callable, Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from engine.store.chat_rows import reply_of
from engine.store.chats import ChatTable
from engine.tasks.transcript import Also
from toolagent.contracts.chats import ChatReply, ChatTurn, Chunk
from toolagent_service.agents.loop import is_answer
from toolagent_service.agents.service import SERVICE
from toolagent_service.contracts.agent import ModelTurnNote
from toolagent_service.contracts.model import ModelTurn


class Answering:
    """Of one message of a chat, by one attempt; an `engine.tasks.transcript.AlsoWritten`. `answer` makes the answer of a turn."""

    def __init__(self, chats: ChatTable, chat_id: str, answer: Callable[[ModelTurn], ChatTurn]) -> None:
        self._chats, self._chat_id, self._answer = chats, chat_id, answer
        self._written: tuple[ModelTurn, ChatReply] | None = None

    def __call__(self, note: ModelTurnNote, turn: ModelTurn, unheard: Sequence[Chunk]) -> Also | None:
        async def write(connection: AsyncConnection) -> None:
            stands = await self._chats.answer_within(connection, self._chat_id, self._answer(turn), unheard)
            self._written = turn, reply_of(self._chat_id, stands)

        return write if is_answer(SERVICE, note) else None

    def reply_with(self, standing: ModelTurn) -> ChatReply | None:
        """What was written with it; None where another attempt wrote it, or nobody could write the answer."""
        if self._written is None or self._written[0].content != standing.content:
            return None
        return self._written[1]
