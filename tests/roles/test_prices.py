"""Prices by the name of a model, from a validated file."""

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.roles.prices import PriceFileError, Prices
from toolagent_service.contracts.model import ModelTurn, Usage

SHIPPED = Path(__file__).parents[2] / "data" / "prices.json"
RATES: dict[str, JsonValue] = {"input": 1, "output": 2, "cache_read": 3, "cache_write": 4}


def _file(tmp_path: Path, **changes: JsonValue) -> Path:
    document = {"currency": "USD", "per_tokens": 1_000_000, "as_of": "2026-10-10", "prices": [{"models": ["a"], "price": RATES}], **changes}
    path = tmp_path / "prices.json"
    path.write_text(json.dumps(document), "utf-8")
    return path


def _turn(model: str) -> ModelTurn:
    return ModelTurn(content=(), stop_reason="end_turn", model=model, usage=Usage(output_tokens=500_000))


def test_the_shipped_file_knows_models_with_and_without_a_date() -> None:
    prices = Prices.read(SHIPPED)
    dated, undated = prices.of("claude-opus-4-5-20251101"), prices.of("claude-opus-4-5")
    assert dated == undated
    assert undated is not None
    assert (undated.input, undated.output) == (5, 25)
    haiku = prices.of("claude-haiku-5-5")
    assert haiku is not None
    assert haiku.long_prompt is not None


def test_in_the_shipped_file_reading_from_the_cache_is_cheaper_and_writing_dearer() -> None:
    for entry in json.loads(SHIPPED.read_text("utf-8"))["prices"]:
        price = Prices.read(SHIPPED).of(entry["models"][0])
        assert price is not None
        assert price.cache_read < price.input < price.cache_write < price.output


@pytest.mark.parametrize("model", ["claude-opus-6", "gpt-5", "claude-opus-5-5-fast", "smollm2", ""])
def test_a_model_that_is_not_listed_has_no_price_and_its_turns_no_cost(model: str) -> None:
    prices = Prices.read(SHIPPED)
    assert prices.of(model) is None
    assert prices.priced(_turn(model), model).cost_usd is None


def test_the_first_pattern_that_fits_holds(tmp_path: Path) -> None:
    free: JsonValue = {"models": ["local-*"], "price": {**RATES, "output": 0}}
    prices = Prices.read(_file(tmp_path, prices=[{"models": ["local-big"], "price": RATES}, free]))
    assert prices.priced(_turn("local-small"), "local-small").cost_usd == 0.0
    assert prices.priced(_turn("local-big"), "local-big").cost_usd == 1.0


def test_the_name_a_model_was_asked_by_counts_before_the_one_it_answers_with(tmp_path: Path) -> None:
    prices = Prices.read(_file(tmp_path))
    assert prices.priced(_turn("another"), "a").cost_usd == 1.0
    assert prices.priced(_turn("a"), "another").cost_usd == 1.0


WRONG: dict[str, dict[str, JsonValue]] = {
    "$.currency": {"currency": "EUR"},
    "$.prices[0].models": {"prices": [{"models": [], "price": RATES}]},
    "$.prices[0].price.input": {"prices": [{"models": ["a"], "price": {**RATES, "input": -1}}]},
    "$.prices[0].price.output": {"prices": [{"models": ["a"], "price": {"input": 1}}]},
    "$.more": {"more": 1},
}


@pytest.mark.parametrize(("place", "changes"), WRONG.items())
def test_a_file_that_is_wrong_is_refused_with_the_place(tmp_path: Path, place: str, changes: dict[str, JsonValue]) -> None:
    with pytest.raises(PriceFileError) as refusal:
        Prices.read(_file(tmp_path, **changes))
    assert f"wrong at {place}:" in str(refusal.value)
    assert "prices.json" in str(refusal.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PriceFileError, match=r"none\.json"):
        Prices.read(tmp_path / "none.json")
