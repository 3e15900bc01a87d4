"""`kill -9` after a message is received and before it is answered."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.im.people import Person
from tests.programs import Program
from tests.system.waiting import wait_until
from toolagent.testing.servers.im_server import ImServer


def lines(file: Path) -> list[str]:
    return file.read_text("utf-8").splitlines() if file.exists() else []


@pytest.mark.promise("im-answered-once")
async def test_what_was_taken_before_a_kill_is_answered_after_it_once(server: ImServer, alice: Person, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.im.program", server.im_url, str(tmp_path)]
    with Program([*command, "hold"]) as first:
        for number in range(3):
            await alice.send(f"question {number}", "w1", message_id=str(number))
        await asyncio.to_thread(wait_until, lambda: lines(tmp_path / "asked"), "the first question is being answered")
        await asyncio.to_thread(wait_until, lambda: not waiting(server), "all are acknowledged")
        first.kill()
    with Program(command) as second:
        assert await alice.replies(3) == [f"w1: question {number}" for number in range(3)]
        second.kill()
    assert lines(tmp_path / "answered") == [f"w1 question {number}" for number in range(3)]


def waiting(server: ImServer) -> object:
    contacts = server.state()["contacts"]
    assert isinstance(contacts, dict)
    contact = contacts["tool_agent"]
    assert isinstance(contact, dict)
    return contact["waiting"]
