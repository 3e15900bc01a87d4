"""The tables of conversations."""

import asyncio
from datetime import UTC, datetime

from engine.store.chats import ChatTable
from engine.store.database import Database
from toolagent.contracts.chats import ChatEventKind, ChatReply, ChatRole, ChatTurn, Chunk
from toolagent.core.chats import task_message_id

AT = datetime(2026, 3, 26, tzinfo=UTC)


def answer_to(message_id: str, text: str = "Yes.", **more: object) -> ChatTurn:
    return ChatTurn.model_validate(
        {"number": 0, "role": ChatRole.ASSISTANT, "text": text, "at": AT, "message_id": message_id, "answered_by": "model", **more}
    )


async def test_a_turn_is_written_once_however_often_it_is_said(database: Database) -> None:
    chats = ChatTable(database)
    said = await asyncio.gather(*(chats.say("a/b", "msg-1", "Hello.") for _ in range(3)))
    assert {one.turn.number for one in said} == {1}
    first = await chats.answer("a/b", answer_to("msg-1"))
    assert await chats.answer("a/b", answer_to("msg-1", "No.")) == first
    reply = (await chats.say("a/b", "msg-1", "Hello.")).reply
    assert isinstance(reply, ChatReply)
    assert (reply.response, reply.chat_id, reply.message_id) == ("Yes.", "a/b", "msg-1")
    assert [event.event for event in await chats.events_after("a/b", 0)] == [
        ChatEventKind.MESSAGE,
        ChatEventKind.MESSAGE,
        ChatEventKind.DONE,
    ]


async def test_a_message_and_its_answer_are_written_together_once(database: Database) -> None:
    chats = ChatTable(database)
    answer = answer_to("msg-1", answered_by="rules")
    said, reply = await chats.exchange("a", "Hello.", answer)
    assert (said.number, said.text, reply.response) == (1, "Hello.", "Yes.")
    assert await chats.exchange("a", "Hello.", answer_to("msg-1", "No.")) == (said, reply)
    await chats.say("a", "msg-2", "Said before.")
    later, _ = await chats.exchange("a", "Said before.", answer_to("msg-2", answered_by="rules"))
    turns = await chats.turns("a")
    assert [(turn.number, turn.role, turn.message_id) for turn in turns] == [
        (1, ChatRole.USER, "msg-1"),
        (2, ChatRole.ASSISTANT, "msg-1"),
        (3, ChatRole.USER, "msg-2"),
        (4, ChatRole.ASSISTANT, "msg-2"),
    ]
    assert later.number == 3
    message, chunk, done = ChatEventKind.MESSAGE, ChatEventKind.CHUNK, ChatEventKind.DONE
    assert [event.event for event in await chats.events_after("a", 0)] == [message, message, chunk, done] * 2


async def test_chats_have_numbers_and_positions_of_their_own(database: Database) -> None:
    chats = ChatTable(database)
    await asyncio.gather(*(chats.say(chat_id, f"msg-{number}", "Hello.") for number in range(4) for chat_id in ("a", "b")))
    for chat_id in ("a", "b"):
        assert [turn.number for turn in await chats.turns(chat_id)] == [1, 2, 3, 4]
        assert [event.position for event in await chats.events_after(chat_id, 0)] == [1, 2, 3, 4]


async def test_of_many_chats_those_that_are_there_are_known(database: Database) -> None:
    chats = ChatTable(database)
    for chat_id in ("a", "b"):
        await chats.say(chat_id, "msg-1", "Hello.")
    await chats.forget("b")
    assert await chats.known([*(f"c{number}" for number in range(1_200)), "b", "a"]) == {"a"}
    assert await chats.known([]) == frozenset()


async def test_chunks_are_told_under_their_message_and_forgotten_later(database: Database) -> None:
    chats = ChatTable(database)
    await chats.say("a", "msg-1", "Hello.")
    conversation = await chats.conversation("a", 1)
    await chats.add_chunks(conversation, [Chunk(type="text", data="x\0")] * 1_100)
    await chats.add_chunks(await chats.conversation("nobody", 1), [Chunk(type="text", data="x")])
    assert await chats.chat_of(conversation) == "a"
    # Old ones go with every twentieth turn.
    for number in range(2, 20):
        await chats.say("a", f"msg-{number}", "Hello?")
    await chats.answer("a", answer_to("msg-1"))
    events = await chats.events_after("a", 0, limit=2_000)
    kept = [event.event for event in events if event.event is not ChatEventKind.CHUNK]
    assert kept == [*[ChatEventKind.MESSAGE] * 20, ChatEventKind.DONE]
    assert len(events) == 1_001
    assert await chats.position_before("a", "msg-1") == 0


async def test_tasks_are_followed_until_their_end_is_told(database: Database) -> None:
    chats = ChatTable(database)
    await chats.say("a", "msg-1", "Make two.")
    await chats.answer("a", answer_to("msg-1", task_ids=("create_00000001", "create_00000002")))
    await chats.answer("a", answer_to(task_message_id("create_00000001")), ends=False)
    assert await chats.unended_tasks("a") == ("create_00000002",)


async def test_a_chat_rests_is_opened_again_and_is_forgotten(database: Database) -> None:
    chats = ChatTable(database)
    await chats.say("a", "msg-1", "Hello.")
    await chats.rest("a")
    assert (await chats.open_count(), await chats.page(limit=9, is_open=True)) == (0, ())
    await chats.say("a", "msg-2", "Again.")
    assert await chats.open_count() == 1
    assert await chats.forget("a")
    assert not await chats.forget("a")
    # What is still under way for it is written nowhere.
    await chats.answer("a", answer_to("msg-2"))
    assert (await chats.turns("a"), await chats.events_after("a", 0), await chats.get("a")) == ((), (), None)


async def test_what_was_begun_in_a_deleted_chat_is_not_of_the_one_that_is_called_so_later(database: Database) -> None:
    chats = ChatTable(database)
    await chats.say("a", "msg-1", "Hello.")
    before = await chats.conversation("a", 1)
    await chats.forget("a")
    await chats.say("a", "msg-2", "Hello?")
    assert (await chats.chat_of(before), await chats.chat_of(await chats.conversation("a", 1))) == (None, "a")
