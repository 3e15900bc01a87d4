"""The next step of an agent, and the state after the outcome of a step."""

import pytest

from tests.core.loops import PRICE, asked, noted, outcome, request, turn, use
from toolagent.contracts.making import Guidance
from toolagent_service.agents import loop
from toolagent_service.agents.coding import CODING, LONGEST_EVIDENCE, another_round
from toolagent_service.contracts.agent import AgentEnd, AgentRequest, LoopState, ModelAsk, ShownOutcome, ToolNote
from toolagent_service.contracts.model import Usage

START = LoopState(started_s=0.0)


def _end(of: AgentRequest, state: LoopState, now_s: float = 0.0) -> AgentEnd:
    step = loop.next_step(of, state, now_s)
    assert isinstance(step, loop.Finish), step
    return step.result.end


def test_the_first_thing_is_to_ask_the_model() -> None:
    of = request(turn_tokens=4_000)
    assert loop.begin(of, 7.0) == LoopState(started_s=7.0)
    first = ModelAsk(conversation_id="create_0a1b2c3d", prompt="coding", turn=1, position=1, max_tokens=4_000, limits=of.limits)
    assert asked(of, START) == first


def test_what_the_model_wants_is_done_in_its_order_and_it_is_told_what_came_of_it() -> None:
    first, second = use(use_id="1"), use(use_id="2", digest="b")
    state = noted(request(), START, turn(first, second))
    step = loop.next_step(request(), state, 10.0)
    assert isinstance(step, loop.RunTools)
    assert [(run.tool_use_id, run.position, run.remaining_s) for run in step.allowed] == [("1", 2, 3_590.0), ("2", 2, 3_590.0)]
    state = loop.after_tools(state, (outcome(first), outcome(second)))
    ask = asked(request(), state)
    assert (ask.turn, ask.position) == (2, 3)
    assert ask.outcomes == (ShownOutcome(tool_use_id="1"), ShownOutcome(tool_use_id="2"))


def test_outcomes_may_be_told_one_by_one_and_twice() -> None:
    first, second = use(use_id="1"), use(use_id="2", digest="b")
    state = noted(request(), START, turn(first, second))
    at_once = loop.after_tools(state, (outcome(first), outcome(second)))
    one_by_one = loop.after_tools(loop.after_tools(state, (outcome(first),)), (outcome(first), outcome(second)))
    assert one_by_one == at_once
    assert at_once.tool_calls == 2


def test_asked_again_the_loop_says_the_same() -> None:
    state = noted(request(), START, turn(use()))
    assert loop.next_step(request(), state, 1.0) == loop.next_step(request(), state, 1.0)


def test_what_cannot_be_done_is_told_without_doing_anything() -> None:
    wrong, right = use("grep", use_id="1", fault="There is no tool 'grep'."), use(use_id="2")
    state = noted(request(), START, turn(wrong, right))
    step = loop.next_step(request(), state, 0.0)
    assert isinstance(step, loop.RunTools)
    assert [run.tool_use_id for run in step.allowed] == ["2"]
    assert [(note.tool_use_id, note.text, note.is_error) for note in step.refused] == [("1", "There is no tool 'grep'.", True)]
    state = loop.after_tools(state, (*step.refused, outcome(right)))
    assert asked(request(), state).outcomes == (
        ShownOutcome(tool_use_id="1", text="There is no tool 'grep'."),
        ShownOutcome(tool_use_id="2"),
    )


def test_a_candidate_ends_the_agent() -> None:
    final = use(CODING.final_tool)
    state = loop.after_tools(noted(request(), START, turn(final)), (outcome(final, product="candidate-1"),))
    step = loop.next_step(request(), state, 0.0)
    assert isinstance(step, loop.Finish)
    assert (step.result.end, step.result.product) == (AgentEnd.DONE, "candidate-1")


def test_nothing_is_done_after_a_candidate_was_submitted() -> None:
    final, after = use(CODING.final_tool, use_id="1"), use("write_file", use_id="2")
    step = loop.next_step(request(), noted(request(), START, turn(final, after)), 0.0)
    assert isinstance(step, loop.RunTools)
    assert [run.name for run in step.allowed] == [CODING.final_tool]
    assert [note.name for note in step.refused] == ["write_file"]


def test_a_candidate_that_could_not_be_submitted_does_not_end_the_agent() -> None:
    final = use(CODING.final_tool)
    state = loop.after_tools(noted(request(), START, turn(final)), (outcome(final, digest="that id is taken"),))
    assert asked(request(), state).outcomes == (ShownOutcome(tool_use_id="toolu_1"),)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"turns": 1}, AgentEnd.TURNS),
        ({"tokens": 2_000}, AgentEnd.TOKENS),
        ({"cost_usd": 0.02}, AgentEnd.MONEY),
        ({"wall_s": 5}, AgentEnd.WALL_TIME),
    ],
)
@pytest.mark.promise("agents-are-bounded")
def test_each_limit_ends_the_agent_with_a_reason_that_names_it(limits: dict[str, float | None], expected: AgentEnd) -> None:
    of = request(PRICE, **limits)
    state = noted(of, START, turn(use(), usage=Usage(input_tokens=900, output_tokens=100)))
    state = loop.after_tools(state, (outcome(use()),))
    step = loop.next_step(of, state, 6.0)
    assert isinstance(step, loop.Finish)
    assert step.result.end is expected
    assert f"limits.{next(iter(limits))}" in step.result.reason
    assert isinstance(loop.next_step(request(), state, 6.0), loop.AskModel)


def test_no_tool_is_begun_when_the_time_is_over() -> None:
    assert _end(request(wall_s=5), noted(request(), START, turn(use())), 5.0) is AgentEnd.WALL_TIME


def test_a_model_that_does_nothing_is_asked_to_go_on_twice() -> None:
    state = START
    for _ in range(loop.IDLE_TURNS):
        state = noted(request(), state, turn(said="I think it is done."))
        assert "register_tool" in asked(request(), state).remarks[0]
    state = noted(request(), state, turn(said="It cannot be done: the page is gone."))
    step = loop.next_step(request(), state, 0.0)
    assert isinstance(step, loop.Finish)
    assert step.result.end is AgentEnd.GAVE_UP
    assert "the page is gone" in step.result.reason


def test_a_model_that_works_in_between_may_pause_again() -> None:
    state = START
    for number in range(5):
        state = noted(request(), state, turn())
        state = noted(request(), state, turn(use(digest=str(number))))
        state = loop.after_tools(state, (outcome(use()),))
    assert state.end is None


def test_an_answer_that_was_cut_before_it_used_a_tool_is_asked_for_in_smaller_steps() -> None:
    state = noted(request(), START, turn(stop_reason="max_tokens"))
    assert "smaller" in asked(request(), state).remarks[0]


@pytest.mark.parametrize(("stop_reason", "expected"), [("refusal", AgentEnd.REFUSED), ("model_context_window_exceeded", AgentEnd.CONTEXT)])
def test_what_going_on_cannot_change_ends_the_agent(stop_reason: str, expected: AgentEnd) -> None:
    assert _end(request(), noted(request(), START, turn(use(), stop_reason=stop_reason))) is expected


def test_going_round_is_hinted_at_first_and_then_ends() -> None:
    state, hints = START, 0
    for number in range(1, loop.CIRCLE_END + 1):
        assert state.end is None
        state = noted(request(), state, turn(use("run_in_uv", use_id=f"1{number}"), use("read_file", use_id=f"2{number}")))
        state = loop.after_tools(state, tuple(outcome(pending) for pending in state.pending))
        hints += sum("same thing" in remark for remark in state.remarks)
        assert (hints > 0) == (number >= loop.CIRCLE_HINT)
    assert hints == 2  # one for each of the two steps
    assert _end(request(), state) is AgentEnd.CIRCLES


@pytest.mark.parametrize("same", ["input", "outcome"])
def test_the_same_with_another_outcome_is_no_circle_nor_is_another_input(same: str) -> None:
    state = START
    for number in range(20):
        wanted = use(digest="same" if same == "input" else str(number))
        state = noted(request(), state, turn(wanted))
        state = loop.after_tools(state, (outcome(wanted, digest="same" if same == "outcome" else str(number)),))
    assert (state.end, state.remarks) == (None, ())


def test_asking_for_an_unknown_tool_over_and_over_is_a_circle() -> None:
    state = START
    for _ in range(loop.CIRCLE_END):
        state = noted(request(), state, turn(use("grep", fault="There is no tool 'grep'.")))
        step = loop.next_step(request(), state, 0.0)
        assert isinstance(step, loop.RunTools)
        state = loop.after_tools(state, step.refused)
    assert _end(request(), state) is AgentEnd.CIRCLES


def test_guidance_is_told_once_and_with_the_next_turn() -> None:
    said = Guidance(id="g1", text="Use pillow.")
    state = loop.with_guidance(loop.with_guidance(START, said), said)
    ask = asked(request(), state)
    assert [remark for remark in ask.remarks if "Use pillow." in remark] == [*ask.remarks]
    assert len(ask.remarks) == 1
    state = loop.after_model(CODING, state, ask, turn(use()))
    assert loop.with_guidance(state, said).remarks == ()


def test_guidance_that_comes_while_the_model_answers_is_not_lost() -> None:
    ask = asked(request(), START)
    state = loop.with_guidance(START, Guidance(id="g1", text="Use pillow."))
    state = loop.after_model(CODING, state, ask, turn(use()))
    state = loop.with_guidance(state, Guidance(id="g2", text="And keep it small."))
    state = loop.after_tools(state, (outcome(use()),))
    assert [remark.rpartition(": ")[2] for remark in asked(request(), state).remarks] == ["Use pillow.", "And keep it small."]


def test_guidance_is_refused_when_much_of_it_waits_and_when_nobody_listens() -> None:
    state = START
    for number in range(loop.MOST_REMARKS):
        assert loop.refusal_of(state) is None
        state = loop.with_guidance(state, Guidance(id=str(number), text="More."))
    assert "wait" in (loop.refusal_of(state) or "")
    assert "ended" in (loop.refusal_of(loop.ended(START, AgentEnd.MODEL, "No key.")) or "")


def test_what_did_not_pass_goes_back_to_the_agent_for_so_many_rounds() -> None:
    of = request(rounds=2)
    final = use(CODING.final_tool)
    state = loop.after_tools(noted(of, START, turn(final)), (outcome(final, product="candidate-1"),))
    again = another_round(of, state, "GET /health: 500")
    assert again is not None
    ask = asked(of, again)
    assert (ask.turn, ask.position, ask.outcomes) == (2, 3, (ShownOutcome(tool_use_id="toolu_1"),))
    assert "GET /health: 500" in ask.remarks[0]
    assert (again.round, again.product, again.tokens) == (2, None, state.tokens)
    assert another_round(of, again, "GET /health: 500") is None


def test_long_evidence_is_cut() -> None:
    again = another_round(request(), START, "x" * 1_000_000)
    assert again is not None
    assert len(again.remarks[0]) < LONGEST_EVIDENCE + 300


def test_a_run_that_goes_on_begins_where_the_last_one_was() -> None:
    state = noted(request(), START, turn(use()))
    assert loop.begin(request().model_copy(update={"resume_from": state}), 99.0) == state


def test_what_was_paid_is_counted_and_what_has_no_price_too() -> None:
    state = noted(request(), START, turn(use(), usage=Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_write_tokens=4)))
    state = loop.after_tools(state, (outcome(use()),))
    state = noted(request(), state, turn(use(digest="b"), cost_usd=None))
    assert (state.turns, state.tokens, state.cost_usd, state.model) == (2, 130, 0.01, "claude")


def test_answers_that_broke_off_are_paid_for_too() -> None:
    note = turn(use()).model_copy(update={"lost": Usage(input_tokens=1_000, output_tokens=7), "lost_usd": 0.5})
    state = noted(request(), START, note)
    assert (state.turns, state.tokens, state.cost_usd, state.last_usage.total) == (1, 1_127, 0.51, 120)


def test_a_note_of_what_nobody_asked_for_changes_nothing() -> None:
    state = noted(request(), START, turn(use()))
    assert loop.after_tools(state, (ToolNote(tool_use_id="another", name="x"),)) == state
