"""The files of windows: their content, and the effects of a crash or a bad disk."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import structlog

from engine.im.chatbox import ChatBox
from engine.im.protocol import reply_to
from engine.im.window import CHATBOX, PENDING, ChatWindow, folder_of
from engine.im.windows import ChatWindows, WindowFull
from tests.disks import file_size_limit
from toolagent.contracts.im import ImMessage


def asked(message_id: str, chat: str | None = "w1", content: str = "hello", sender: str = "alice") -> ImMessage:
    return ImMessage(id=message_id, sender=sender, receiver="tool_agent", content=content, receiver_chat_id=chat, sender_chat_id="hers")


def texts(folder: Path) -> list[str]:
    return [json.loads(line)["content"] for line in (folder / CHATBOX).read_text("utf-8").splitlines()]


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_what_waits_is_pending_until_it_is_acknowledged_and_stays_in_the_box(tmp_path: Path) -> None:
    message = asked("1")
    told = reply_to(message, "w1", "hi")
    windows = ChatWindows(tmp_path)
    await windows.load()
    assert await windows.take(message) == ("w1",)
    await windows.answer("w1", message, told)
    again = ChatWindows(tmp_path)
    await again.load()
    assert (again.next_waiting("w1"), again.unacknowledged()) == (None, (told,))
    await again.settle("w1", told.id)
    folder = folder_of(tmp_path, "w1")
    assert json.loads((folder / PENDING).read_bytes()) == {"chat_id": "w1", "entries": []}
    assert texts(folder) == ["hello", "hi"]


@pytest.mark.promise("im-answered-once")
async def test_a_message_that_came_before_the_restart_is_known(tmp_path: Path) -> None:
    windows = ChatWindows(tmp_path)
    await windows.take(asked("1"))
    again = ChatWindows(tmp_path)
    assert await again.take(asked("1")) == ()
    assert await again.take(asked("1", sender="bob")) == ("w1",), "another sender may choose the same id"


@pytest.mark.parametrize("chat_id", ["../../etc/passwd", "user A/window 1", "用户_窗口", "." * 200])
async def test_any_chat_id_has_a_folder_of_its_own_in_the_root(chat_id: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    windows = ChatWindows(root)
    await windows.take(asked("1", chat_id))
    assert names(tmp_path) == ["root"]
    (name,) = names(root)
    assert name.isalnum()
    again = ChatWindows(root)
    await again.load()
    assert again.chat_ids == (chat_id,)


def test_wherever_the_last_line_is_torn_the_message_is_there_once(tmp_path: Path) -> None:
    window = ChatWindow.opened(tmp_path, "w1")
    window.take(asked("1"))
    box = folder_of(tmp_path, "w1") / CHATBOX
    whole = box.stat().st_size
    window.take(asked("2", content="second"))
    after = box.read_bytes()
    for cut in range(whole, len(after)):
        box.write_bytes(after[:cut])
        mended = ChatWindow.opened(tmp_path, "w1")
        assert [message.id for message in mended.waiting] == ["1", "2"]
        assert texts(box.parent) == ["hello", "second"]


def test_a_line_that_is_no_message_is_passed_over(tmp_path: Path) -> None:
    box = ChatBox(tmp_path / CHATBOX, "w1")
    box.append(asked("1"))
    with (tmp_path / CHATBOX).open("ab") as file:
        file.write(b"\0\0\0\n")
    box.append(asked("2"))
    with structlog.testing.capture_logs() as logs:
        assert [message.id for message in ChatBox(tmp_path / CHATBOX, "w1").last(5)] == ["1", "2"]
    assert logs[0]["event"] == "im_chatbox_lines_skipped"


async def test_a_damaged_pending_file_is_set_aside(tmp_path: Path) -> None:
    windows = ChatWindows(tmp_path)
    await windows.take(asked("1"))
    folder = folder_of(tmp_path, "w1")
    (folder / PENDING).write_bytes(b"{")
    again = ChatWindows(tmp_path)
    await again.load()
    assert await again.take(asked("2")) == ("w1",)
    assert (folder / "pending.damaged").read_bytes() == b"{"


async def test_what_a_full_disk_does_not_take_is_not_taken(tmp_path: Path) -> None:
    windows = ChatWindows(tmp_path)
    await windows.take(asked("1"))
    with file_size_limit(1_000), pytest.raises(OSError, match="large"):
        await windows.take(asked("2", content="x" * 2_000))
    assert texts(folder_of(tmp_path, "w1")) == ["hello"]
    assert await windows.take(asked("2", content="x" * 2_000)) == ("w1",)
    assert windows.waiting("w1") == 2


async def test_windows_unused_longest_are_closed_unless_something_waits_there(tmp_path: Path) -> None:
    windows = ChatWindows(tmp_path, most=2)
    await windows.take(asked("1", "w1"))
    for chat in ("w2", "w3"):
        message = asked("1", chat)
        await windows.take(message)
        told = reply_to(message, chat, "hi")
        await windows.answer(chat, message, told)
        await windows.settle(chat, told.id)
    await windows.take(asked("1", "w4"))
    assert windows.chat_ids == ("w1", "w4")
    assert await windows.take(asked("2", "w2")) == ("w2",), "it is opened again"


async def test_a_window_takes_a_hundred_and_says_so(tmp_path: Path) -> None:
    windows = ChatWindows(tmp_path)
    for number in range(100):
        await windows.take(asked(str(number)))
    with pytest.raises(WindowFull, match="'w1' 100 messages wait"):
        await windows.take(asked("100"))
    assert await windows.take(asked("7")) == (), "it has this one"
    with pytest.raises(WindowFull, match="100 messages wait"):
        await windows.take(asked("all", None))
    await windows.take(asked("other", "w2"))
    assert await windows.take(asked("all", None)) == ("w2",), "a full window is left out"


async def told_without_end(windows: ChatWindows, count: int, content: str = "hi") -> list[str]:
    """The ids of answers that are never acknowledged."""
    ids: list[str] = []
    for number in range(count):
        message = asked(f"never-{number}", "deaf")
        await windows.take(message)
        told = reply_to(message, "deaf", content)
        await windows.answer("deaf", message, told)
        ids.append(told.id)
    return ids


async def test_whoever_acknowledges_nothing_shuts_nobody_out_and_loses_the_oldest_answers(tmp_path: Path) -> None:
    dropped: list[str] = []
    windows = ChatWindows(tmp_path, dropped=dropped.append)
    await windows.load()
    ids = await told_without_end(windows, 103)
    assert dropped == ids[:3]
    assert await windows.take(asked("1", None)) == ("deaf",)
    again = ChatWindows(tmp_path)
    await again.load()
    assert [message.id for message in again.unacknowledged()] == ids[3:]
    assert await again.take(asked("2", None)) == ("deaf",)
    await again.settle("deaf", ids[0])
    assert texts(folder_of(tmp_path, "deaf")).count("hi") == 103


async def test_answers_that_nobody_acknowledges_give_way_to_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.im.windows._MOST_CHARACTERS", 1_000)
    dropped: list[str] = []
    windows = ChatWindows(tmp_path, dropped=dropped.append)
    ids = await told_without_end(windows, 3, "x" * 300)
    assert await windows.take(asked("1", "w1", "y" * 300)) == ("w1",)
    assert dropped == ids[:1]
    with pytest.raises(WindowFull, match="Too much waits"):
        await windows.take(asked("2", "w1", "y" * 701))
    assert dropped == ids[:1], "what cannot be taken costs nobody an answer"


async def test_what_is_said_without_being_asked_has_its_room_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.im.windows._MOST_CHARACTERS", 1_000)
    dropped: list[str] = []
    windows = ChatWindows(tmp_path, dropped=dropped.append)
    ids = await told_without_end(windows, 2, "x" * 300)
    await windows.take(asked("1", "w1"))
    assert await windows.say("w1", "one", "z" * 600)
    assert dropped == ids[:1]
    assert await windows.say("w1", "one", "z" * 600) is None
    assert dropped == ids[:1], "what is said already needs no room"
    await windows.take(asked("2", "w1", "y" * 900))
    with pytest.raises(WindowFull, match="Too much waits"):
        await windows.say("w1", "two", "z" * 600)


async def test_what_was_said_under_a_key_is_known_after_a_restart(tmp_path: Path) -> None:
    windows = ChatWindows(tmp_path)
    await windows.take(asked("1"))
    await windows.say("w1", "key", "one")
    for there in (windows, ChatWindows(tmp_path)):
        found = [await there.has_said_otherwise(chat_id, key, "one") for chat_id, key in (("w1", "key"), ("w1", "new"), ("w2", "key"))]
        assert [*found, await there.has_said_otherwise("w1", "key", "two")] == [False, False, False, True]


@pytest.mark.promise("im-answered-once")
async def test_what_is_for_all_and_comes_again_is_not_taken_by_a_window_opened_since(tmp_path: Path) -> None:
    windows = ChatWindows(tmp_path)
    await windows.take(asked("1", "w1"))
    assert await windows.take(asked("all", None)) == ("w1",)
    await windows.take(asked("2", "w2"))
    assert await windows.take(asked("all", None)) == ()
    again = ChatWindows(tmp_path)
    await again.load()
    assert await again.take(asked("all", None)) == ()


@pytest.mark.promise("im-answered-once")
async def test_what_is_for_all_and_was_not_taken_by_all_is_taken_by_the_rest_after_a_restart(tmp_path: Path) -> None:
    windows = ChatWindows(tmp_path)
    for chat in ("w1", "w2"):
        await windows.take(asked("1", chat))
    box = folder_of(tmp_path, "w2") / CHATBOX
    whole = box.rename(box.with_suffix(".aside"))
    pending = (box.parent / PENDING).read_bytes()
    box.mkdir()
    with pytest.raises(OSError, match="directory"):
        await windows.take(asked("all", None))
    box.rmdir()
    whole.rename(box)
    (box.parent / PENDING).write_bytes(pending)
    again = ChatWindows(tmp_path)
    await again.load()
    await again.take(asked("1", "w3"))
    assert await again.take(asked("all", None)) == ("w2",)
    assert await again.take(asked("all", None)) == ()


async def test_a_window_goes_with_its_chat_unless_something_waits_or_was_just_said(tmp_path: Path) -> None:
    windows = ChatWindows(tmp_path)
    await windows.load()
    for chat_id in ("kept", "gone", "waits"):
        await windows.take(asked("1", chat_id))
    for chat_id in ("kept", "gone"):
        message = asked("1", chat_id)
        told = reply_to(message, chat_id, "hi")
        await windows.answer(chat_id, message, told)
        await windows.settle(chat_id, told.id)

    async def known(chat_ids: Sequence[str]) -> frozenset[str]:
        return frozenset(chat_ids) & {"kept"}

    await windows.forget_gone(known)
    assert len(names(tmp_path)) == 3, "it was just used"
    await windows.forget_gone(known, rest_s=-1)
    assert {*names(tmp_path)} == {folder_of(tmp_path, name).name for name in ("kept", "waits")}
    assert {*windows.chat_ids} == {"kept", "waits"}
    assert await windows.take(asked("1", "gone")) == ("gone",)
