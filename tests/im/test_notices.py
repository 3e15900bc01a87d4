"""What chats say by themselves, and what an agent has said."""

from pathlib import Path

import pytest

from engine.im.tools import IM_FUNCTIONS, NotDone
from tests.im.people import Chats, Person, Sayings, person, running_client
from toolagent.contracts.im import ImType
from toolagent.testing.servers.im_server import ImServer


async def test_a_notice_goes_to_whoever_asked_last_in_its_window(server: ImServer, alice: Person, chats: Chats, tmp_path: Path) -> None:
    sayings = Sayings()
    sayings.say("w1", "said before anybody was there")
    async with running_client(server, tmp_path, chats, sayings):
        await alice.send("make me a tool", "w1", message_id="1", own_chat="hers")
        await alice.next(ImType.REPLY)
        async with person(server, "bob") as bob:
            await bob.send("hello all", message_id="1")
            await bob.next(ImType.REPLY)
        sayings.failures = [OSError("the database is away")]
        sayings.say("unknown", "nobody has written there")
        sayings.say("w1", "the tool is made")
        notice = await alice.next(ImType.NOTICE)
    assert (notice.content, notice.sender_chat_id, notice.receiver_chat_id) == ("the tool is made", "w1", "hers")


async def test_what_was_said_while_nothing_ran_is_delivered_then_and_once(
    server: ImServer, alice: Person, chats: Chats, tmp_path: Path
) -> None:
    sayings = Sayings()
    async with running_client(server, tmp_path, chats, sayings):
        await alice.send("hello", "w1", message_id="1")
        await alice.next(ImType.REPLY)
        sayings.say("w1", "one")
        assert (await alice.next(ImType.NOTICE)).content == "one"
    sayings.say("w1", "two")
    # As after a crash between the window and the place in the stream.
    (tmp_path / "notices_position").write_text("0", "utf-8")
    async with running_client(server, tmp_path, chats, sayings):
        assert (await alice.next(ImType.NOTICE)).content == "two"


async def test_an_agent_lists_reads_and_sends(server: ImServer, alice: Person, chats: Chats, tmp_path: Path) -> None:
    functions = {function.name: function for function in IM_FUNCTIONS}
    async with running_client(server, tmp_path, chats) as client:
        await alice.send("hello", "w1", message_id="1")
        await alice.next(ImType.REPLY)
        assert await functions["list_windows"].run(client, {}, "use-1") == {
            "connected": True,
            "windows": [{"chat_id": "w1", "waiting": 0}],
        }
        given = {"chat_id": "w1", "content": "one more thing"}
        assert [await functions["send_message"].run(client, {**given}, "use-2") for _ in range(2)] == [
            {"status": "sent"},
            {"status": "sent before"},
        ]
        assert (await alice.next(ImType.NOTICE)).content == "one more thing"
        read = await functions["read_messages"].run(client, {"chat_id": "w1", "limit": 2}, "use-3")
        assert [message["content"] for message in read["messages"]] == ["w1: hello", "one more thing"]  # pyright: ignore
        for wrong in ({"chat_id": "nowhere", "content": "x"}, {"chat_id": "w1"}):
            with pytest.raises(NotDone):
                await functions["send_message"].run(client, {**wrong}, "use-4")
