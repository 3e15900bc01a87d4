"""The loop ends within its limits, and its state stays small, whatever a model does."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.core.loops import PRICE, asked, live, request, turn, use
from toolagent.contracts.making import Guidance
from toolagent_service.agents import loop
from toolagent_service.agents.coding import CODING, LONGEST_EVIDENCE, another_round
from toolagent_service.agents.model_cost import LEAST_ANSWER, cost_of
from toolagent_service.contracts.agent import AgentEnd, LoopState, ModelAsk, ModelTurnNote, ToolNote
from toolagent_service.contracts.model import Usage

_NAMES = st.sampled_from(["run_in_uv", "write_file", "no_such_tool", CODING.final_tool])
_STOPS = st.sampled_from(["", "max_tokens", "stop_sequence", "pause_turn", "what_is_new"])
_LIMITS = st.fixed_dictionaries(
    {
        "turns": st.integers(1, 12),
        "wall_s": st.floats(0.1, 100),
        "tokens": st.integers(1, 50_000),
        "cost_usd": st.none() | st.floats(0, 0.5),
        "turn_tokens": st.integers(1, 8_000),
    }
)


def _clock(step: float) -> Iterator[float]:
    now = 0.0
    while True:
        yield now
        now += step


@pytest.mark.promise("agents-are-bounded")
@given(limits=_LIMITS, step=st.floats(0, 20), data=st.data(), priced=st.booleans())
def test_it_always_ends_within_its_limits(limits: dict[str, float | None], step: float, data: st.DataObject, priced: bool) -> None:
    of = request(PRICE if priced else None, **limits)
    asks: list[ModelAsk] = []

    def answer(ask: ModelAsk) -> ModelTurnNote:
        asks.append(ask)
        names = data.draw(st.lists(_NAMES, max_size=3))
        uses = (use(name, str(place), f"{ask.turn}/{place}", "No." if name == "no_such_tool" else "") for place, name in enumerate(names))
        usage = Usage(input_tokens=data.draw(st.integers(0, 5_000)), output_tokens=data.draw(st.integers(0, ask.max_tokens)))
        cost = cost_of(PRICE, usage) if priced else None
        return turn(*uses, stop_reason=data.draw(_STOPS), usage=usage, cost_usd=cost)

    def do(use_id: str) -> ToolNote:
        return ToolNote(tool_use_id=use_id, name="", digest=data.draw(st.sampled_from("ab")))

    result, steps = live(of, answer, do, _clock(step))
    assert len(asks) <= of.limits.turns
    assert steps <= 2 * of.limits.turns
    assert all(ask.max_tokens <= of.limits.turn_tokens for ask in asks)
    assert [ask.position for ask in asks] == [2 * number + 1 for number in range(len(asks))]
    assert result.reason
    assert len(result.state.model_dump_json()) < 20_000
    if of.limits.cost_usd is not None and not priced:
        # Time or tokens may be over before.
        assert asks == []


@given(tokens=st.integers(1, 300_000), cost_usd=st.floats(0, 2), growth=st.integers(0, 130_000), opening=st.integers(0, 20_000))
@example(tokens=11_334, cost_usd=0.125, growth=0, opening=0)  # it reads nothing at first, and uses a cache then
def test_what_is_read_is_known_before_so_tokens_and_money_are_never_passed(tokens: int, cost_usd: float, growth: int, opening: int) -> None:
    """Each turn adds `growth` tokens of outcomes, as many as 32 files read at once; the first message has `opening` tokens."""
    of = request(tokens=tokens, cost_usd=cost_usd, turns=200, turn_tokens=4_000).model_copy(update={"opening": 3 * opening})
    spent = Usage()
    read, new = 0, opening

    def answer(ask: ModelAsk) -> ModelTurnNote:
        nonlocal spent, read, new
        # The conversation so far comes from the cache, what is new (the last answer, and the outcomes) does not.
        usage = Usage(cache_read_tokens=read, cache_write_tokens=new, output_tokens=ask.max_tokens)
        read, new = read + new, ask.max_tokens + growth
        spent = Usage(
            input_tokens=0,
            output_tokens=spent.output_tokens + usage.output_tokens,
            cache_read_tokens=spent.cache_read_tokens + usage.cache_read_tokens,
            cache_write_tokens=spent.cache_write_tokens + usage.cache_write_tokens,
        )
        return turn(use(digest=str(ask.turn)), usage=usage, cost_usd=cost_of(PRICE, usage))

    result, _ = live(of, answer, lambda use_id: ToolNote(tool_use_id=use_id, name="", size=3 * growth), _clock(0))
    assert result.end in {AgentEnd.TOKENS, AgentEnd.MONEY, AgentEnd.TURNS}
    assert spent.total <= tokens
    assert cost_of(PRICE, spent) <= cost_usd + 1e-9


@pytest.mark.promise("histories-stay-small")
def test_a_state_of_two_hundred_calls_is_small() -> None:
    of = request(turns=300, tokens=100_000_000)

    def answer(ask: ModelAsk) -> ModelTurnNote:
        # What runs through all the limits of a note's length.
        last = ask.turn > 200
        wanted = use(CODING.final_tool if last else "write_file", str(ask.turn), f"toolu_{ask.turn:024}").model_copy(
            update={"summary": "x" * 160}
        )
        return turn(wanted, usage=Usage(input_tokens=10, cache_read_tokens=1_000 * ask.turn, output_tokens=500), said="y" * 400)

    def do(use_id: str) -> ToolNote:
        return ToolNote(tool_use_id=use_id, name="", digest=use_id[-8:], product="candidate" if use_id.endswith("201") else None)

    result, _ = live(of, answer, do, _clock(0))
    assert (result.end, result.state.tool_calls) == (AgentEnd.DONE, 201)
    assert len(result.state.model_dump_json()) < 4_000


@pytest.mark.promise("histories-stay-small")
def test_a_state_with_all_that_people_may_say_and_the_longest_evidence_is_bounded() -> None:
    of = request()
    state = loop.begin(of, 0.0)
    rejected = another_round(of, state, "字" * 2 * LONGEST_EVIDENCE)
    assert rejected is not None
    said = 0
    while loop.refusal_of(rejected) is None:
        said += 1
        rejected = loop.with_guidance(rejected, Guidance(id=f"{said:040}", text="字" * 4_000))
    assert said == loop.MOST_REMARKS - 1
    assert len(rejected.model_dump_json()) < 95_000
    assert len(rejected.model_dump_json().encode()) < 280_000
    # Once they were said they are forgotten.
    heard = loop.after_model(CODING, rejected, asked(of, rejected), turn(use()))
    assert len(heard.model_dump_json()) < 4_000


@given(st.builds(LoopState, started_s=st.floats(0, 10), turns=st.integers(0, 10), tokens=st.integers(0, 10_000)))
def test_a_state_survives_being_written_down(state: LoopState) -> None:
    assert LoopState.model_validate_json(state.model_dump_json()) == state


def test_the_least_answer_is_asked_for_though_the_limit_of_a_turn_is_less() -> None:
    small = LEAST_ANSWER // 2
    step = loop.next_step(request(turn_tokens=small), LoopState(started_s=0), 0)
    assert isinstance(step, loop.AskModel)
    assert step.ask.max_tokens == small
