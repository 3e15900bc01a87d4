"""The service's conversations in IM windows: which refusals are shown, and notices of tasks."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from engine.im.answering import Unanswerable
from engine.im.conversations import ConversationAnswers, ConversationNotices
from engine.im.notices import Notice
from engine.store.chat_sayings import ChatSayings
from engine.store.chats import ChatTable
from engine.store.database import Database
from toolagent.client import names
from toolagent.client.failures import ChatRefusedError, ChatUnreachableError
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.chats import ChatMessage, ChatReply, ChatRole, ChatTurn
from toolagent.core.chats import task_message_id

_BOUND_S = 60


class Said:
    """Implements `Chats`; `failure` is what it raises."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure, self.messages = failure, list[ChatMessage]()

    async def say(self, message: ChatMessage) -> ChatReply:
        self.messages.append(message)
        if self.failure is not None:
            raise self.failure
        return ChatReply(response="hi", chat_id=message.chat_id, message_id=message.message_id)


async def test_a_message_is_said_to_its_chat_under_its_id() -> None:
    said = Said()
    assert await ConversationAnswers(said, 100, names.CHAT_FULL).answer("w1", "im-1", "hello") == "hi"
    assert said.messages == [ChatMessage(chat_id="w1", message="hello", message_id="im-1")]


async def test_one_that_is_too_large_is_not_said() -> None:
    said = Said()
    with pytest.raises(Unanswerable, match="300 bytes"):
        await ConversationAnswers(said, 299, names.CHAT_FULL).answer("w1", "im-1", "字" * 100)
    assert said.messages == []


@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (ChatRefusedError(names.CHAT_FULL, "Too many wait."), ChatRefusedError),
        (ChatUnreachableError("Temporal is away."), ChatUnreachableError),
        (ChatRefusedError(ErrorType.VALIDATION_ERROR.value, "No."), Unanswerable),
    ],
)
async def test_what_passes_is_asked_again_and_what_stays_is_told(failure: Exception, raised: type[Exception]) -> None:
    with pytest.raises(raised):
        await ConversationAnswers(Said(failure), 100, names.CHAT_FULL).answer("w1", "im-1", "hello")


async def announced(chats: ChatTable, chat_id: str, task_id: str, at: datetime) -> None:
    turn = ChatTurn(number=0, role=ChatRole.ASSISTANT, text=f"{task_id} is done.", at=at, message_id=task_message_id(task_id))
    await chats.answer(chat_id, turn, ends=False)


async def test_what_chats_say_by_themselves_is_found_once_and_goes_on_from_a_position(database: Database) -> None:
    chats, notices = ChatTable(database), ConversationNotices(ChatSayings(database), look_s=0)
    now = datetime.now(UTC)
    for chat_id in ("w1", "w2"):
        await chats.say(chat_id, "im-1", "make me a tool")
    await announced(chats, "w2", "create_1", now - timedelta(hours=1))
    stream = notices.after((now - timedelta(hours=2)).isoformat())
    assert (await following(stream)).key == "task-create_1"
    await announced(chats, "w1", "create_2", datetime.now(UTC))
    second = await following(stream)
    assert (second.chat_id, second.key, second.text) == ("w1", "task-create_2", "create_2 is done.")
    await announced(chats, "w1", "create_3", datetime.now(UTC))
    assert (await following(stream)).key == "task-create_3"
    # What is near the position comes again: its key says that it is the same.
    again = notices.after(second.position)
    assert [(await following(again)).key for _ in range(2)] == ["task-create_2", "task-create_3"]


async def following(stream: AsyncIterator[Notice]) -> Notice:
    async with asyncio.timeout(_BOUND_S):
        return await anext(stream)
