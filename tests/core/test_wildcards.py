"""Names with `*`, and the names that they match."""

import pytest

from toolagent_service.making.wildcards import chosen, meaningless

THINGS = ("getPet", "getPets", "makeOrder")


def names(thing: str) -> tuple[str, ...]:
    return (thing, f"tag-{thing[:3]}")


def test_those_with_a_name_that_a_pattern_means_are_chosen() -> None:
    assert chosen(THINGS, ["GETPET*"], names) == (("getPet", "getPets"), ("makeOrder",))
    assert chosen(THINGS, ["tag-mak"], names)[0] == ("makeOrder",)
    assert chosen(THINGS, [], names) == (THINGS, ())


@pytest.mark.parametrize(
    ("patterns", "said"),
    [
        (["getPet", "make*"], ""),
        (["getPet", "getPt"], "'getPt', which `operations` names, is none of them. The nearest are: getPet"),
        (["zzz"], "There are, for example: getPet"),
    ],
)
def test_a_pattern_that_means_nothing_is_told_with_what_comes_nearest(patterns: list[str], said: str) -> None:
    told = meaningless(THINGS, patterns, names)
    assert said in told
    assert bool(told) is bool(said)
