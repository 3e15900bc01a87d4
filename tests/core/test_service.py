"""What the model of a conversation is told, and what is taken from its answers."""

from datetime import UTC, datetime

import pytest

from toolagent.contracts.chats import ChatRole, ChatTurn
from toolagent.contracts.tasks import TaskState
from toolagent_service.agents import loop
from toolagent_service.agents.service import MOST_SHOWN, MOST_TOOLS, RECENT_TURNS, SERVICE, announced, mentioned, opening, remembered
from toolagent_service.contracts.agent import AgentEnd, AgentRequest, LoopState, ModelTurnNote
from toolagent_service.contracts.chats import TaskOutcome
from toolagent_service.contracts.model import Usage

AT = datetime(2026, 3, 26, tzinfo=UTC)


def turns(count: int, text: str = "Hello.") -> list[ChatTurn]:
    roles = (ChatRole.USER, ChatRole.ASSISTANT)
    return [ChatTurn(number=n, role=roles[(n - 1) % 2], text=f"{n}: {text}", at=AT, message_id=str(n)) for n in range(1, count + 1)]


def test_the_first_message_is_told_as_it_is() -> None:
    assert opening("Which tools?", [], 0) == "Which tools?"


def test_recent_turns_are_told_as_they_were_said_and_older_ones_in_short() -> None:
    told = opening("And now?", turns(RECENT_TURNS + 10), older=5)
    assert told.endswith("The message to answer now:\n\nAnd now?")
    assert told.count("<user>") + told.count("<assistant>") == RECENT_TURNS
    assert "(5 more before these)\n- they: 1: Hello." in told


@pytest.mark.parametrize("text", ["x" * 100_000, "很长" * 50_000, "word\n" * 3_000])
def test_what_is_told_is_bounded(text: str) -> None:
    assert len(opening("And now?", turns(200, text), older=1_800)) < MOST_SHOWN + 10_000


def test_only_known_tools_are_mentioned_each_once_in_order() -> None:
    text = "Use acme:word_counter, then echo; `image_stitcher` may do it: echo again. Not echoes."
    known = ("echo", "image_stitcher", "acme:word_counter", "calculator")
    assert mentioned(text, known[:2], known[2:]) == ("acme:word_counter", "echo", "image_stitcher")


def test_the_latest_tools_are_remembered() -> None:
    assert remembered(("a", "b"), ("c",), ("a",)) == ("b", "c", "a")
    assert len(remembered((), [f"tool_{number}" for number in range(500)])) == MOST_TOOLS


@pytest.mark.parametrize(
    ("status", "said"),
    [(TaskState.COMPLETED, "`tally` can be called now"), (TaskState.FAILED, "has failed"), (TaskState.CANCELLED, "cancelled")],
)
def test_the_end_of_a_task_is_told(status: TaskState, said: str) -> None:
    assert said in announced(TaskOutcome(task_id="create_0a1b2c3d", tool_id="tally", status=status, tool_ids=("tally",), reason="So."))


@pytest.mark.parametrize(("note_said", "end"), [("It is so.", AgentEnd.DONE), ("", None)])
def test_text_ends_a_run_and_silence_does_not(note_said: str, end: AgentEnd | None) -> None:
    request, state = AgentRequest(conversation_id="chat:0:1", prompt="service", role="service"), LoopState(started_s=0)
    ask = loop.next_step(request, state, 0)
    assert isinstance(ask, loop.AskModel)
    note = ModelTurnNote(stop_reason="end_turn", model="m", usage=Usage(), said=note_said)
    assert loop.after_model(SERVICE, state, ask.ask, note).end is end
