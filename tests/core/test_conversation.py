"""Messages to a model, as the API takes them, and notes of what it answers."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from toolagent_service.agents.coding import CODING
from toolagent_service.agents.conversation import next_message, opening_message, sendable
from toolagent_service.agents.model_notes import MOST_USES, digest_of, note_of
from toolagent_service.contracts.agent import ModelAsk, ShownOutcome
from toolagent_service.contracts.model import Block, Carried, Message, ModelTurn, Text, ToolOutcome, ToolUse, Usage

ASK = ModelAsk(conversation_id="create_0a1b2c3d", prompt="coding", turn=2, position=3, max_tokens=100)
BLOCKS = st.one_of(
    st.builds(Text, text=st.text(" \na", max_size=3)),
    st.builds(ToolUse, id=st.text("ab", min_size=1, max_size=2), name=st.just("x")),
    st.builds(Carried, block=st.just({"type": "thinking", "thinking": "", "signature": "s"})),
)
MESSAGES = st.lists(st.builds(Message, role=st.sampled_from(["user", "assistant"]), content=st.lists(BLOCKS, max_size=3).map(tuple)))


def _answer(*content: Block, stop_reason: str = "tool_use") -> ModelTurn:
    return ModelTurn(content=content, stop_reason=stop_reason, model="claude", usage=Usage())


def test_the_opening_is_followed_by_what_was_said_since() -> None:
    ask = ASK.model_copy(update={"remarks": ("Use pillow.",)})
    assert opening_message("The task.", ask).content == (Text(text="The task."), Text(text="Use pillow."))


def test_every_use_is_answered_in_the_order_of_the_uses() -> None:
    answer = Message(role="assistant", content=(ToolUse(id="1", name="a"), ToolUse(id="2", name="b"), ToolUse(id="3", name="c")))
    ask = ASK.model_copy(
        update={"outcomes": (ShownOutcome(tool_use_id="3", text="No such tool."), ShownOutcome(tool_use_id="1")), "remarks": ("Go on.",)}
    )
    kept = ToolOutcome(tool_use_id="1", content="done")
    first, second, third, remark = next_message(answer, {"1": kept}, ask).content
    assert first == kept
    assert isinstance(second, ToolOutcome)
    assert (second.tool_use_id, second.is_error) == ("2", True)
    assert third == ToolOutcome(tool_use_id="3", content="No such tool.", is_error=True)
    assert remark == Text(text="Go on.")


def test_a_message_is_never_empty() -> None:
    assert next_message(Message(role="assistant", content=()), {}, ASK).content != ()


@given(MESSAGES)
def test_what_is_sent_takes_turns_and_holds_no_empty_text(messages: list[Message]) -> None:
    sent = sendable(messages)
    assert all(one.role != other.role for one, other in itertools.pairwise(sent))
    assert all(message.content for message in sent)
    assert all(block.text.strip() for message in sent for block in message.content if isinstance(block, Text))
    kept = [block for message in messages for block in message.content if not isinstance(block, Text)]
    assert [block for message in sent for block in message.content if not isinstance(block, Text)] == kept


def test_a_conversation_that_is_in_order_is_sent_as_it_is() -> None:
    messages = (
        Message(role="user", content=(Text(text="a"),)),
        Message(role="assistant", content=(Carried(block={"type": "thinking"}), ToolUse(id="1", name="x"))),
        Message(role="user", content=(ToolOutcome(tool_use_id="1", content=""),)),
    )
    assert sendable(messages) == messages


def test_a_note_says_what_is_wanted_in_short() -> None:
    use = ToolUse(id="1", name="run_in_uv", input={"command": "API_KEY=abc123 pytest"})
    [noted] = note_of(_answer(Text(text="Now\nthe tests."), use), CODING.smaller_steps, lambda _: "").uses
    assert noted.summary == 'run_in_uv | {"command":"API_KEY=*** pytest"}'
    assert (noted.id, noted.fault, noted.input_digest) == ("1", None, digest_of(use.input))


def test_a_note_of_a_large_turn_is_small() -> None:
    uses = [ToolUse(id=f"toolu_{number}", name="n" * 1_000, input={"content": "x" * 100_000}) for number in range(100)]
    note = note_of(_answer(Text(text="y" * 100_000), *uses), CODING.smaller_steps, lambda _: "z" * 100_000)
    assert len(note.uses) == MOST_USES
    assert len(note.model_copy(update={"uses": note.uses[:1]}).model_dump_json()) < 4_000


def test_the_use_in_which_an_answer_was_cut_off_is_not_run() -> None:
    whole, half = ToolUse(id="1", name="write_file", input={"path": "a"}), ToolUse(id="2", name="write_file", input={"path": "b"})
    cut = note_of(_answer(whole, half, stop_reason="max_tokens"), CODING.smaller_steps, lambda _: "")
    assert [bool(use.fault) for use in cut.uses] == [False, True]
    assert "append" in str(cut.uses[1].fault)
    after = note_of(_answer(whole, Text(text="and"), stop_reason="max_tokens"), CODING.smaller_steps, lambda _: "")
    assert [bool(use.fault) for use in after.uses] == [False]


def test_what_is_wrong_with_a_use_is_noted() -> None:
    [noted] = note_of(_answer(ToolUse(id="1", name="grep")), CODING.smaller_steps, lambda use: f"There is no tool {use.name!r}.").uses
    assert noted.fault == "There is no tool 'grep'."


def test_a_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert digest_of({"a": 1, "b": [1, 2]}) == digest_of({"b": [1, 2], "a": 1})
    assert digest_of({"a": 1}) != digest_of({"a": 2})
    assert digest_of({"a": "\ud800"})
