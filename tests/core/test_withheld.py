"""Which examples the maker of a tool never sees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolagent.contracts.task_specs import Example
from toolagent_service.making.withheld import divided, withheld

EXAMPLES = st.lists(st.integers(0, 9), max_size=30).map(
    lambda inputs: [Example(input={"number": number}, expected_output=place) for place, number in enumerate(inputs)]
)


@pytest.mark.promise("withheld-stays-withheld")
@given(task_id=st.from_regex(r"\Acreate_[0-9a-f]{8}\Z"), examples=EXAMPLES)
def test_at_least_a_third_and_never_all(task_id: str, examples: list[Example]) -> None:
    places = withheld(task_id, examples)
    if len({str(example.input) for example in examples}) < 2:
        assert places == frozenset()
        return
    assert max(1, len(examples) / 3) <= len(places) < len(examples)
    hidden = {str(examples[place].input) for place in places}
    assert not any(str(example.input) in hidden for place, example in enumerate(examples) if place not in places)


@given(examples=EXAMPLES)
def test_a_task_always_withholds_the_same_and_loses_none(examples: list[Example]) -> None:
    shown, hidden = divided("create_0a1b2c3d", examples)
    assert (shown, hidden) == divided("create_0a1b2c3d", examples)
    assert sorted((*shown, *hidden), key=lambda example: str(example.expected_output)) == sorted(
        examples, key=lambda example: str(example.expected_output)
    )


def test_which_are_withheld_cannot_be_told_from_their_order() -> None:
    examples = [Example(input={"number": number}, expected_output=number) for number in range(3)]
    chosen = {withheld(f"create_{number:08x}", examples) for number in range(50)}
    assert chosen == {frozenset({0}), frozenset({1}), frozenset({2})}


def test_of_two_one_is_withheld_and_of_one_none() -> None:
    examples = [Example(input={"number": number}, expected_output=number) for number in range(2)]
    assert len(withheld("create_0a1b2c3d", examples)) == 1
    assert withheld("create_0a1b2c3d", examples[:1]) == frozenset()
