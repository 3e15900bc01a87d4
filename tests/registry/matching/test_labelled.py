"""Labelled queries over ten thousand tools: what is found by words, and by words and meanings together."""

import pytest

from bench.search.catalog import entries, labelled, tools_asked_for
from bench.search.finding import recall
from engine.registry.matching.meanings import meanings_here
from engine.registry.matching.ranking import Ranking
from engine.registry.matching.texts import Filters

SIZE, AMONG = 10_000, 5


@pytest.fixture(scope="module")
def by_words() -> Ranking:
    return _ranking(Ranking())


@pytest.fixture(scope="module")
def by_both() -> Ranking:
    meanings = meanings_here()
    if meanings is None:
        pytest.skip("the extra `meanings` is not installed")
    return _ranking(Ranking(meanings))


def _ranking(ranking: Ranking) -> Ranking:
    ranking.change((), [entry.manifest for entry in entries(SIZE)])
    return ranking


def test_words_and_meanings_find_nine_needs_in_ten(by_both: Ranking) -> None:
    assert recall(by_both, labelled(), AMONG) >= 0.9


def test_words_alone_find_three_needs_in_four(by_words: Ranking) -> None:
    assert recall(by_words, labelled(), AMONG) >= 0.75


@pytest.mark.parametrize("which", ["by_words", "by_both"])
def test_an_exact_name_or_id_comes_first(which: str, request: pytest.FixtureRequest) -> None:
    ranking: Ranking = request.getfixturevalue(which)
    asked = [(query, tool.tool_id) for tool in tools_asked_for() for query in (tool.name, tool.tool_id, tool.name.upper())]
    assert [query for query, tool_id in asked if ranking.search(query, Filters())[0] != tool_id] == []
