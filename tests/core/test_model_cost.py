"""The cost of a turn, and the limits of a task."""

import pytest

from toolagent.contracts.task_specs import MakeLimits
from toolagent_service.agents.model_cost import Exhausted, answer_budget, cost_of, limits_for
from toolagent_service.contracts.agent import AgentEnd, AgentLimits, LoopState
from toolagent_service.contracts.model import LongPromptRates, Price, Usage

PRICE = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)
FREE = Price(input=0, output=0, cache_read=0, cache_write=0)
ALLOWED = AgentLimits(turns=50, wall_s=600, tokens=100_000, cost_usd=2.0)


def test_each_kind_of_token_has_its_price() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=100_000, cache_read_tokens=2_000_000, cache_write_tokens=1_000_000)
    assert cost_of(PRICE, usage) == pytest.approx(3 + 1.5 + 0.6 + 3.75)


def test_a_long_prompt_has_its_own_price_for_the_whole_turn() -> None:
    long = LongPromptRates(over_tokens=100_000, input=6, output=30, cache_read=0.6, cache_write=7.5)
    price = PRICE.model_copy(update={"long_prompt": long})
    assert cost_of(price, Usage(cache_read_tokens=100_000, output_tokens=1_000)) == pytest.approx(0.03 + 0.015)
    assert cost_of(price, Usage(cache_read_tokens=100_001, output_tokens=1_000)) == pytest.approx(0.06 + 0.03, abs=1e-5)


def test_a_task_gets_what_it_asks_for_and_never_more_than_is_allowed() -> None:
    asked = MakeLimits(turns=10, wall_s=6_000, tokens=200_000, cost_usd=5)
    assert limits_for(asked, ALLOWED, PRICE) == ALLOWED.model_copy(update={"turns": 10})
    assert limits_for(MakeLimits(cost_usd=0.5), ALLOWED, PRICE).cost_usd == 0.5
    assert limits_for(MakeLimits(), ALLOWED, PRICE) == ALLOWED


def test_without_a_price_the_services_limit_in_money_gives_way_and_the_tasks_own_does_not() -> None:
    assert limits_for(MakeLimits(), ALLOWED, None).cost_usd is None
    limits = limits_for(MakeLimits(cost_usd=1), ALLOWED, None)
    told = answer_budget(limits, None, LoopState(started_s=0))
    assert isinstance(told, Exhausted)
    assert told.end is AgentEnd.UNPRICED


def test_the_services_limit_in_money_holds_for_what_is_paid_under_the_name_that_answers() -> None:
    limits = limits_for(MakeLimits(), ALLOWED, None)
    assert answer_budget(limits, None, LoopState(started_s=0, cost_usd=1.99)) == limits.turn_tokens
    told = answer_budget(limits, None, LoopState(started_s=0, cost_usd=2.0))
    assert isinstance(told, Exhausted)
    assert told.end is AgentEnd.MONEY
    nothing = limits_for(MakeLimits(), ALLOWED.model_copy(update={"cost_usd": 0.0}), None)
    assert answer_budget(nothing, None, LoopState(started_s=0)) == nothing.turn_tokens


def test_what_is_written_down_for_the_next_turn_is_read_too() -> None:
    limits = ALLOWED.model_copy(update={"cost_usd": None})
    state = LoopState(started_s=0, tokens=80_000, last_usage=Usage(cache_read_tokens=5_000), unread=15_000, remarks=("字" * 1_000,))
    assert answer_budget(limits, PRICE, state) == 100_000 - 80_000 - 5_000 - 5_000 - 1_000
    money = answer_budget(ALLOWED.model_copy(update={"cost_usd": 0.1}), PRICE, state)
    assert money == int((0.1 - 0.0015 - 6_000 * 3.75e-6) / 15e-6)
    told = answer_budget(limits, PRICE, state.model_copy(update={"unread": 100_000}))
    assert isinstance(told, Exhausted)
    assert told.end is AgentEnd.TOKENS


def test_a_limit_of_nothing_lets_only_free_models_work() -> None:
    limits = ALLOWED.model_copy(update={"cost_usd": 0.0})
    told = answer_budget(limits, PRICE, LoopState(started_s=0))
    assert isinstance(told, Exhausted)
    assert told.end is AgentEnd.MONEY
    assert answer_budget(limits, FREE, LoopState(started_s=0)) == limits.turn_tokens


def test_the_next_turn_is_taken_to_read_what_the_last_one_read_and_wrote() -> None:
    state = LoopState(started_s=0, tokens=90_000, last_usage=Usage(cache_read_tokens=5_000, output_tokens=1_000))
    assert answer_budget(ALLOWED.model_copy(update={"cost_usd": None}), PRICE, state) == 100_000 - 90_000 - 6_000


def test_an_endpoint_that_does_not_cache_is_not_expected_to() -> None:
    limits = ALLOWED.model_copy(update={"cost_usd": 0.1})
    cached = LoopState(started_s=0, last_usage=Usage(cache_read_tokens=10_000))
    plain = LoopState(started_s=0, last_usage=Usage(input_tokens=10_000))
    with_cache, without = answer_budget(limits, PRICE, cached), answer_budget(limits, PRICE, plain)
    assert (with_cache, without) == (int((0.1 - 0.003) / 15e-6), int((0.1 - 0.03) / 15e-6))
