"""Which of several things a task means."""

from toolagent.core.wildcards import chosen


def names(thing: str) -> tuple[str, ...]:
    return (thing,)


def test_without_patterns_all_are_meant() -> None:
    assert chosen(["a", "b"], (), names) == (("a", "b"), ())


def test_patterns_mean_names_whatever_their_case() -> None:
    assert chosen(["getPet", "listPets", "addPet"], ("GETpet", "list*"), names) == (("getPet", "listPets"), ("addPet",))
