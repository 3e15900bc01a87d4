"""Notices of chats."""

from pathlib import Path

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
