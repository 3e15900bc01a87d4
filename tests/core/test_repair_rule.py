"""The rule by which failing calls open a repair."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolagent_service.making.repair_rule import DAY, Due, Earlier, Health, Outcome, RepairRules, Waits, Well, decide

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
RULES = RepairRules(after_failures=3, pause_s=600, per_day=2)
MINUTE = timedelta(minutes=1)


def outcomes(told: str) -> tuple[Outcome, ...]:
    """The newest first: `x` is a failure with an input of its own, `A` one with the same input, `.` a success."""
    return tuple(Outcome("A" if letter == "A" else str(place), failed=letter != ".") for place, letter in enumerate(told))


def ended(ago: timedelta, *, is_repair: bool = True) -> Earlier:
    return Earlier(NOW - ago - MINUTE, NOW - ago, is_repair)


@pytest.mark.parametrize(
    ("told", "is_due"),
    [
        ("", False),
        ("xx", False),
        ("xxx", True),
        ("x.x.x.", True),
        (".xxx", False),  # its newest call succeeded
        ("x.....xx", False),  # what is older does not count
        ("AAA", True),  # whatever it is asked, it fails
        ("AAA.", False),  # it answers others: one caller repeats a bad input
        ("AxxA.", True),
    ],
)
def test_a_version_that_fails_again_and_again_is_due(told: str, is_due: bool) -> None:
    decision = decide(Health(NOW, outcomes(told)), RULES)
    assert isinstance(decision, Due if is_due else Well)


def test_what_fails_for_single_inputs_alone_serves_the_others_meanwhile() -> None:
    assert decide(Health(NOW, outcomes("..."), poisonous=1), RULES) == Due("1 input that ended its process again and again", holds=False)
    assert decide(Health(NOW, outcomes("xxx"), poisonous=1), RULES) == Due("3 of its last 3 calls failed", holds=True)


def test_a_process_that_does_not_stay_up_is_due_and_serves_calls_meanwhile() -> None:
    assert decide(Health(NOW, outcomes("..."), alerts=2), RULES) == Well()
    assert decide(Health(NOW, alerts=3), RULES) == Due("its process ended by itself, or failed its checks, 3 times lately", holds=False)


@pytest.mark.parametrize("pause_s", [1e13, float("inf")])
def test_a_pause_is_a_day_at_most(pause_s: float) -> None:
    earlier = [ended(5 * MINUTE)] * 5
    assert decide(Health(NOW, outcomes("xxx"), earlier=earlier), RepairRules(3, pause_s)) == Waits(
        "3 of its last 3 calls failed", NOW - 5 * MINUTE + DAY
    )


def test_a_repair_under_way_is_waited_for() -> None:
    assert isinstance(decide(Health(NOW, outcomes("xxx"), earlier=[Earlier(NOW - 9 * DAY, None)]), RULES), Waits)


def test_the_pause_doubles_with_each_repair_of_the_day() -> None:
    once, twice = [ended(5 * MINUTE)], [ended(5 * MINUTE), ended(60 * MINUTE)]
    assert decide(Health(NOW, outcomes("xxx"), earlier=once), RULES) == Waits("3 of its last 3 calls failed", NOW + 5 * MINUTE)
    assert decide(Health(NOW, outcomes("xxx"), earlier=twice), RULES) == Waits("3 of its last 3 calls failed", NOW + 15 * MINUTE)
    assert isinstance(decide(Health(NOW, outcomes("xxx"), earlier=[ended(DAY - MINUTE / 2)]), RULES), Due)


@pytest.mark.parametrize(
    ("rules", "hindrance"), [(RULES, "There is no model."), (RepairRules(3, 600, 0), ""), (RepairRules(3, 600, 1), "")]
)
def test_what_cannot_be_repaired_now_is_an_alert_once_a_pause(rules: RepairRules, hindrance: str) -> None:
    earlier = [ended(60 * MINUTE)]
    due = decide(Health(NOW, outcomes("xxx"), earlier=earlier, hindrance=hindrance), rules)
    assert isinstance(due, Due)
    assert due.only_told
    told = [ended(MINUTE, is_repair=False), *earlier]
    assert isinstance(decide(Health(NOW, outcomes("xxx"), earlier=told, hindrance=hindrance), rules), Waits)


@given(steps=st.lists(st.tuples(st.sampled_from("xA."), st.integers(-7_200, 7_200)), max_size=80))
def test_a_tool_that_flaps_is_repaired_no_more_often_than_it_may_whatever_the_clock_does(steps: list[tuple[str, int]]) -> None:
    """The clock advances half an hour a step, and jumps by up to two hours; times in the future are corrected, as the store does."""
    now, earlier, since, letters = NOW, list[Earlier](), 0, "".join(letter for letter, _ in steps)
    for step, (_, jump) in enumerate(steps):
        now += 30 * MINUTE + timedelta(seconds=jump)
        earlier = [Earlier(min(one.opened_at, now), min(one.ended_at or now, now), one.is_repair) for one in earlier]
        decision = decide(Health(now, outcomes(letters[since : step + 1][::-1]), earlier=earlier), RULES)
        if isinstance(decision, Due):
            earlier.insert(0, Earlier(now, now, is_repair=not decision.only_told))
            since = step + 1
        assert len([one for one in earlier if one.is_repair and one.opened_at > now - DAY]) <= RULES.per_day
