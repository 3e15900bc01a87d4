"""The conversations of the measurements are those that their bounds describe."""

import pytest

from bench.bounds import judge
from bench.conversations import BUILD, BUILD_TURNS, TALK, TURN_S, conversations
from bench.results import Results, Single
from toolagent.testing.servers.scenario import Conversation

_DEPLOY = "deploy without a model over 6 times by hand, or by hand and 8 s"


def _conversation(name: str, calls: int = 200) -> Conversation:
    return next(one for one in conversations(calls).all_conversations() if one.name == name)


def test_the_build_has_ten_turns_of_200_ms_and_ends_with_a_candidate() -> None:
    build = _conversation(BUILD)
    assert (build.length, {turn.seconds for turn in build.turns}) == (BUILD_TURNS, {TURN_S}) == (10, {0.2})
    assert build.turns[-1].tool_use[0].name == "register_tool"


@pytest.mark.parametrize("calls", [20, 199, 200])
def test_the_long_talk_uses_tools_as_often_as_is_asked(calls: int) -> None:
    uses = [use for turn in _conversation(TALK, calls).turns for use in turn.tool_use]
    assert (len(uses), uses[-1].name) == (calls, "register_tool")


def test_the_long_talk_has_two_hundred_thousand_tokens() -> None:
    pages = [page for turn in _conversation(TALK).turns for use in turn.tool_use if isinstance(page := use.input.get("content"), str)]
    # What is written is read again; a token is four characters.
    assert 2 * sum(map(len, pages)) / 4 >= 195_000
    assert len(set(pages)) == len(pages)


@pytest.mark.parametrize(
    ("ours", "hand", "met"),
    [(12_000, 2_000, True), (12_001, 2_000, False), (9_000, 1_000, True), (9_001, 1_000, False), (8_500, 500, True)],
)
def test_a_deploy_may_take_six_times_as_long_or_eight_seconds_more(ours: float, hand: float, met: bool) -> None:
    singles = [Single(name=name, label=name, value=value, unit="ms") for name, value in (("deploy.ours", ours), ("deploy.hand", hand))]
    verdicts = judge(Results(machine={}, run={}, singles=singles))
    assert [verdict.met for verdict in verdicts if verdict.label == _DEPLOY] == [met]
