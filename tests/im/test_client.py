"""The client with a real server: routing, order, and faults of the server."""

from pathlib import Path

import pytest
import structlog

from engine.im.client import Bounds
from engine.im.protocol import key_of
from engine.im.window import CHATBOX, folder_of
from tests.im.people import Chats, Person, person, running_client
from toolagent.contracts.im import ImMessage, ImType
from toolagent.testing.servers.im_faults import ImFault
from toolagent.testing.servers.im_server import ImServer


async def test_an_answer_goes_back_to_the_chat_that_asked(server: ImServer, alice: Person, chats: Chats, tmp_path: Path) -> None:
    async with running_client(server, tmp_path, chats):
        await alice.send("which tools?", "w1", message_id="1", own_chat="hers")
        reply = await alice.next()
    assert (reply.sender, reply.receiver, reply.type, reply.content) == ("tool_agent", "alice", ImType.REPLY, "w1: which tools?")
    assert (reply.sender_chat_id, reply.receiver_chat_id) == ("w1", "hers")


async def test_without_a_window_named_all_answer_and_the_first_message_opens_one(
    server: ImServer, alice: Person, chats: Chats, tmp_path: Path
) -> None:
    async with running_client(server, tmp_path, chats):
        await alice.send("hello", message_id="1")
        assert await alice.replies(1) == ["mine: hello"]
        await alice.send("one", "w1", message_id="2")
        assert await alice.replies(1) == ["w1: one"]
        await alice.send("all", message_id="3")
        assert sorted(await alice.replies(2)) == ["mine: all", "w1: all"]


@pytest.mark.promise("im-answered-once")
async def test_what_one_of_several_windows_cannot_keep_now_is_kept_later_and_answered_once_in_each(
    server: ImServer, alice: Person, chats: Chats, tmp_path: Path
) -> None:
    async with running_client(server, tmp_path, chats):
        for window in ("w1", "w2"):
            await alice.send("hello", window, message_id=window)
            await alice.next()
        box = folder_of(tmp_path / "windows", "w2") / CHATBOX
        whole = box.rename(box.with_suffix(".aside"))
        box.mkdir()
        await alice.send("all", message_id="all")
        assert await alice.replies(1) == ["w1: all"]
        box.rmdir()
        whole.rename(box)
        assert await alice.replies(1) == ["w2: all"]
    assert set(chats.asked.values()) == {1}


@pytest.mark.promise("im-in-order")
async def test_windows_are_answered_at_once_but_bounded_and_each_in_order(
    server: ImServer, alice: Person, chats: Chats, tmp_path: Path
) -> None:
    chats.hold.clear()
    async with running_client(server, tmp_path, chats, bounds=Bounds(at_once=3)):
        for number in range(4):
            for window in ("w1", "w2", "w3", "w4", "w5"):
                await alice.send(str(number), window, message_id=f"{window}-{number}")
        await chats.until(lambda: chats.at_once == 3)
        chats.hold.set()
        await alice.replies(20)
    assert chats.most_at_once == 3
    for window in ("w1", "w2", "w3", "w4", "w5"):
        assert [text for chat, text in chats.order if chat == window] == ["0", "1", "2", "3"]


@pytest.mark.promise("im-answered-once")
@pytest.mark.parametrize("kind", ["drop", "drop_after", "twice", "garbage", "unknown_type"])
async def test_what_a_server_does_to_a_delivery_costs_no_message_and_no_second_answer(
    kind: str, server: ImServer, alice: Person, chats: Chats, tmp_path: Path
) -> None:
    server.fail(ImFault.model_validate({"kind": kind, "contact": "tool_agent", "times": 2}))
    async with running_client(server, tmp_path, chats):
        for number in range(4):
            await alice.send(str(number), "w1", message_id=str(number))
        assert await alice.replies(4) == [f"w1: {number}" for number in range(4)]
        for number in (3, 4):  # the first of them again, now that it is answered
            await alice.send(str(number), "w1", message_id=str(number))
        assert await alice.replies(1) == ["w1: 4"]
    assert set(chats.asked.values()) == {1}


@pytest.mark.parametrize(("kind", "event"), [("garbage", "im_frame_skipped"), ("unknown_type", "im_type_unknown")])
async def test_what_cannot_be_used_is_told_in_the_log(
    kind: str, event: str, server: ImServer, alice: Person, chats: Chats, tmp_path: Path
) -> None:
    server.fail(ImFault.model_validate({"kind": kind, "contact": "tool_agent"}))
    with structlog.testing.capture_logs() as logs:
        async with running_client(server, tmp_path, chats):
            await alice.send("hello", "w1", message_id="1")
            await alice.next()
    assert event in {line["event"] for line in logs}


@pytest.mark.parametrize("kind", ["lost_ack", "slow_reader"])
async def test_a_reply_arrives_though_its_acknowledgement_is_lost_or_late(
    kind: str, server: ImServer, alice: Person, chats: Chats, tmp_path: Path
) -> None:
    """Then it arrives twice, under one id."""
    server.fail(ImFault.model_validate({"kind": kind, "contact": "tool_agent", "seconds": 0.5}))
    async with running_client(server, tmp_path, chats):
        for number in ("one", "two"):
            await alice.send(number, "w1", message_id=number)
        assert await alice.replies(2) == ["w1: one", "w1: two"]
    assert set(chats.asked.values()) == {1}


async def test_a_server_that_is_away_or_refuses_is_asked_again(server: ImServer, chats: Chats, tmp_path: Path) -> None:
    server.fail(ImFault(kind="absent", contact="tool_agent", times=2))
    server.fail(ImFault(kind="unauthorized", contact="tool_agent"))
    with structlog.testing.capture_logs() as logs:
        async with running_client(server, tmp_path, chats):
            async with person(server) as alice:
                await alice.send("one", "w1", message_id="1")
                assert await alice.replies(1) == ["w1: one"]
            address = server.im_url
            server.stop()
            async with ImServer(int(address.rpartition(":")[2])) as another, person(another) as alice:
                await alice.send("two", "w1", message_id="2")
                assert await alice.replies(1) == ["w1: two"]
    reasons = [line["reason"] for line in logs if line["event"] == "im_not_connected"]
    assert "503" in reasons[0]
    assert any("IM_TOKEN" in reason for reason in reasons)


async def test_what_a_window_has_given_up_is_not_sent(server: ImServer, chats: Chats, tmp_path: Path) -> None:
    async with running_client(server, tmp_path, chats) as client:
        async with person(server) as alice:
            await alice.send("hello", "w1", message_id="1")
            await alice.replies(1)
        address = server.im_url
        server.stop()
        for number in range(102):
            await client.say("w1", str(number), str(number))
        async with ImServer(int(address.rpartition(":")[2])) as another, person(another) as alice:
            assert (await alice.next(ImType.NOTICE)).content == "2"


async def test_the_token_opens_the_door(tmp_path: Path, chats: Chats) -> None:
    token = "opens"  # noqa: S105 - of this test
    with ImServer(token=token) as server:
        async with running_client(server, tmp_path, chats, token=token), person(server, token=token) as alice:
            await alice.send("one", "w1", message_id="1")
            assert await alice.replies(1) == ["w1: one"]


async def test_a_server_that_stands_still_is_left_and_found_again(server: ImServer, alice: Person, chats: Chats, tmp_path: Path) -> None:
    with structlog.testing.capture_logs() as logs:
        async with running_client(server, tmp_path, chats, heartbeat_s=0.2):
            await alice.send("one", "w1", message_id="1")
            assert await alice.replies(1) == ["w1: one"]
            server.fail(ImFault(kind="stall", contact="tool_agent", seconds=1.5))
            await alice.send("two", "w1", message_id="2")
            assert await alice.replies(1) == ["w1: two"]
    assert any("keepalive ping timeout" in line.get("reason", "") for line in logs)
    assert set(chats.asked.values()) == {1}


async def test_a_frame_that_is_too_large_is_refused_and_what_follows_is_taken(
    server: ImServer, alice: Person, chats: Chats, tmp_path: Path
) -> None:
    server.fail(ImFault(kind="too_large", contact="tool_agent", count=100_000))
    with structlog.testing.capture_logs() as logs:
        async with running_client(server, tmp_path, chats, max_frame_bytes=50_000):
            await alice.send("one", "w1", message_id="1")
            assert await alice.replies(1) == ["w1: one"]
    assert any("1009" in line.get("reason", "") for line in logs)


async def test_a_flood_is_bounded_and_told_and_others_are_served(server: ImServer, alice: Person, chats: Chats, tmp_path: Path) -> None:
    chats.hold.clear()
    server.fail(ImFault(kind="flood", contact="tool_agent", count=300))
    with structlog.testing.capture_logs() as logs:
        async with running_client(server, tmp_path, chats) as client:
            await alice.send("hello", "w1", message_id="1")
            await chats.until(lambda: any(chat == "w1" for chat, _ in chats.asked))
            assert client.windows.waiting("flood") == 100
            chats.hold.set()
            assert await alice.replies(1) == ["w1: hello"]
            await chats.until(lambda: len(chats.order) == 101)
    refused = [line for line in logs if line["event"] == "im_message_refused"]
    assert refused[0]["sender"] == "flood"
    assert len(refused) < 100, "who floods us does not flood the log"


@pytest.mark.parametrize(
    ("content", "chat", "own_chat", "field"),
    [("  ", "w1", "mine", "content"), ("hello", "a\nb", "mine", "receiver_chat_id"), ("hello", "w1", "x" * 201, "sender_chat_id")],
)
async def test_what_cannot_be_answered_is_refused_with_the_field(
    content: str, chat: str, own_chat: str, field: str, server: ImServer, alice: Person, chats: Chats, tmp_path: Path
) -> None:
    async with running_client(server, tmp_path, chats):
        await alice.send(content, chat, message_id="1", own_chat=own_chat)
        told = await alice.next(ImType.ERROR)
    assert told.id == "1"
    assert told.content.startswith(f"{field}: ")
    assert chats.asked == {}


async def test_an_answer_that_fails_is_asked_for_again_and_one_that_cannot_be_is_told(
    server: ImServer, alice: Person, chats: Chats, tmp_path: Path
) -> None:
    chats.failures = [OSError("the service is away"), RuntimeError("something else")]
    async with running_client(server, tmp_path, chats):
        await alice.send("one", "w1", message_id="1")
        await alice.send("unanswerable", "w1", message_id="2")
        assert await alice.replies(2) == ["w1: one", "I cannot answer this."]
    assert sorted(chats.asked.values()) == [1, 3]


async def test_an_answer_that_is_longer_than_a_frame_is_cut(server: ImServer, alice: Person, chats: Chats, tmp_path: Path) -> None:
    async with running_client(server, tmp_path, chats, max_frame_bytes=2_000):
        chats.answers["w1", key_of(ImMessage(id="1", sender="alice", receiver="tool_agent"))] = '"字"' * 2_000
        await alice.send("long", "w1", message_id="1")
        reply = await alice.next()
    assert reply.content.startswith('"字""字"')
    assert reply.content.endswith("(cut: it is longer than a frame may be)")
    assert 1_900 < len(reply.model_dump_json(exclude_none=True).encode()) <= 2_000


async def test_replies_of_others_are_answered_by_nobody(server: ImServer, chats: Chats, tmp_path: Path) -> None:
    """Two agents that answer each other would never end."""
    from_bob = ImMessage(id="1", sender="bob", receiver="tool_agent", content="indeed", type=ImType.REPLY, receiver_chat_id="w1")
    async with running_client(server, tmp_path, chats), person(server, "bob") as bob:
        await bob.send_message(from_bob)
        await bob.send("hello", "w1", message_id="2")
        assert await bob.replies(1) == ["w1: hello"]
    assert [*chats.asked] == [("w1", key_of(from_bob.model_copy(update={"id": "2"})))]
