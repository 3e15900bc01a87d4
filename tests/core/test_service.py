"""The brief of the model of a conversation, and the reading of its answers."""

from datetime import UTC, datetime

import pytest

from toolagent.contracts.chats import ChatRole, ChatTurn
from toolagent.contracts.tasks import TaskState
from toolagent_service.agents import loop
from toolagent_service.agents.service import MOST_SHOWN, MOST_TOOLS, RECENT_TURNS, SERVICE, announced, mentioned, opening, remembered
from toolagent_service.contracts.agent import AgentEnd, AgentLimits, AgentRequest, LoopState, ModelTurnNote, ToolUseNote
from toolagent_service.contracts.chats import TaskOutcome
from toolagent_service.contracts.model import Price, Usage

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
    outcome = TaskOutcome(task_id="create_0a1b2c3d", tool_id="tally", status=status, tool_ids=("tally",), reason="So.")
    assert said in announced(outcome, "Make a tally.")
    told = announced(outcome, "做一个计数工具")
    assert told.startswith("任务 create_0a1b2c3d 已" if status is not TaskState.FAILED else "任务 create_0a1b2c3d 失败")
    assert "详情(英文原文):So." in told, "a reason is written in one language"


USE = ToolUseNote(id="use-1", name="list_tools", summary="", input_digest="1")


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ({"said": "It is so."}, AgentEnd.DONE),
        ({"said": ""}, None),
        ({"said": "I look.", "uses": (USE,)}, None),
        ({"said": "I look.", "stop_reason": "max_tokens"}, None),
        ({"said": "No.", "stop_reason": "refusal"}, AgentEnd.REFUSED),
        ({"said": "So", "stop_reason": "model_context_window_exceeded"}, AgentEnd.CONTEXT),
    ],
)
def test_a_turn_that_is_an_answer_ends_a_run_and_no_other_does_as_answered(said: dict[str, object], end: AgentEnd | None) -> None:
    request, state = AgentRequest(conversation_id="chat:0:1", prompt="service", role="service"), LoopState(started_s=0)
    ask = loop.next_step(request, state, 0)
    assert isinstance(ask, loop.AskModel)
    note = ModelTurnNote.model_validate({"stop_reason": "end_turn", "model": "m", "usage": Usage(), **said})
    assert (loop.after_model(SERVICE, state, ask.ask, note).end, loop.is_answer(SERVICE, note)) == (end, end is AgentEnd.DONE)


def test_an_answer_that_is_cut_off_is_none() -> None:
    request, state = AgentRequest(conversation_id="chat:0:1", prompt="service", role="service"), LoopState(started_s=0)
    note = ModelTurnNote(stop_reason="max_tokens", model="m", usage=Usage(), said="It is s")
    for times in range(loop.IDLE_TURNS + 1):
        ask = loop.next_step(request, state, 0)
        assert isinstance(ask, loop.AskModel)
        assert len(ask.ask.remarks) == min(times, 1)
        state = loop.after_model(SERVICE, state, ask.ask, note)
        assert state.end is (AgentEnd.GAVE_UP if times == loop.IDLE_TURNS else None)
    assert "was cut off" in state.reason


@pytest.mark.parametrize(
    ("limits", "used", "now_s", "setting"),
    [
        ({"turns": 1}, {"turns": 1}, 0, "TURNS"),
        ({"wall_s": 1}, {}, 2, "WALL_S"),
        ({"tokens": 10_000}, {"tokens": 9_999}, 0, "TOKENS"),
        ({"cost_usd": 1}, {"cost_usd": 1}, 0, "LIMIT_USD"),
        ({"known_usd": 1}, {"cost_usd": 1}, 0, "LIMIT_USD"),
    ],
)
def test_a_limit_that_is_reached_is_named_as_the_service_sets_it(
    limits: dict[str, float], used: dict[str, float], now_s: float, setting: str
) -> None:
    price = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)
    given = AgentLimits.model_validate({"cost_usd": None, **limits})
    request = AgentRequest(conversation_id="chat:0:1", prompt="service", role="service", limits=given, price=price)
    step = loop.next_step(request, LoopState.model_validate({"started_s": 0, **used}), now_s, SERVICE.limits)
    assert isinstance(step, loop.Finish)
    assert f"TOOL_AGENT_CHAT_{setting}" in step.result.reason
    assert "limits." not in step.result.reason
