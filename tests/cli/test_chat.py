"""Conversations from the command line, with the real front door."""

import json
from collections.abc import Generator
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner, Result

from engine.store.chats import ChatTable
from engine.store.database import Database
from tests.cli.front_door import FrontDoor, front_door
from toolagent.cli.app import app
from toolagent.client.failures import ChatUnreachableError
from toolagent.contracts.chats import AnsweredBy, ChatRole, ChatTurn, Chunk
from toolagent.core.chats import message_id_for


@pytest.fixture
def door(sqlite_url: str) -> Generator[FrontDoor]:
    with front_door(sqlite_url) as door:
        yield door


def chat(door: FrontDoor, *words: str, text: str | None = None) -> Result:
    return CliRunner().invoke(app, ["chat", *words, "--url", door.url], input=text)


async def written(database: Database) -> None:
    """Write turns as a worker does: a model began to answer twice, used a function and began a task."""
    chats, message_id = ChatTable(database), message_id_for("work", "k")
    await chats.say("work", message_id, "Make me one.")
    parts = (
        Chunk(type="text", data="I beg"),
        Chunk(type="restart"),
        Chunk(type="text", data="I begin.\x1b[2J"),
        Chunk(type="tool_use", data={"name": "submit_task", "input": {}}),
        Chunk(type="text", data="It is "),
        Chunk(type="text", data="begun."),
    )
    await chats.add_chunks(await chats.conversation("work", 1), parts)
    answer = ChatTurn(
        number=0,
        role=ChatRole.ASSISTANT,
        text="It is begun.",
        at=datetime.now(UTC),
        message_id=message_id,
        task_ids=("create_0a1b2c3d",),
        answered_by=AnsweredBy.MODEL,
    )
    await chats.answer("work", answer)


def test_an_answer_is_shown_as_it_is_written(door: FrontDoor) -> None:
    door.database(written)
    result = chat(door, "Make me one.", "--chat", "work", "--key", "k")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "I beg\nI begin.\\x1b[2J\nIt is begun.\n"
    assert result.stderr.splitlines() == [
        "The answer broke off, and is written again:",
        "submit_task …",
        "Begun: create_0a1b2c3d. Follow it: toolagent task create_0a1b2c3d --follow",
    ]
    history = chat(door, "--chat", "work", "--history").stdout.splitlines()
    assert (history[1], history[3]) == ("Make me one.", "It is begun.")
    assert [line.rpartition(" ")[2] for line in history[::2]] == ["you:", "agent:"]


def test_each_line_of_the_input_is_said(door: FrontDoor) -> None:
    result = chat(door, text="One?\n\nTwo?\n")
    assert (result.exit_code, result.stdout) == (0, "You said: One?\nYou said: Two?\n")
    assert [said.chat_id for said in door.client.chats.said.values()] == ["cli", "cli"]


def test_json_is_a_line_for_each_whole_answer(door: FrontDoor) -> None:
    lines = chat(door, "--chat", "a/b", "--json", text="One?\nTwo?\n").stdout.splitlines()
    told = [json.loads(line) for line in lines]
    assert [(answer["response"], answer["chat_id"]) for answer in told] == [("You said: One?", "a/b"), ("You said: Two?", "a/b")]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--history", "Hello."], 2, "--history"),
        (["--key", "k"], 2, "--key"),
        (["--history", "--chat", "nobody"], 1, "There is no chat 'nobody'"),
        (["Hello.", "--chat", "a\tb"], 1, "control character"),
    ],
)
def test_what_cannot_be_done_says_why(door: FrontDoor, words: list[str], code: int, told: str) -> None:
    result = chat(door, *words)
    assert (result.exit_code, told in result.stderr) == (code, True), result.stderr


def test_a_service_that_cannot_answer_now_says_so(door: FrontDoor) -> None:
    door.client.chats.failure = ChatUnreachableError("Temporal does not answer.")
    result = chat(door, "Hello.")
    assert (result.exit_code != 0, "Temporal does not answer." in result.stderr) == (True, True)
