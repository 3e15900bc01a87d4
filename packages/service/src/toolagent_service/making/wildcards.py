"""Selects things by patterns of their names, with `*` for any letters."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import filterfalse
from typing import TypeVar

from toolagent.core.suggestions import nearest

_NEAREST = 5

T = TypeVar("T")


def chosen(things: Sequence[T], patterns: Sequence[str], names: Callable[[T], Sequence[str]]) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """The things with a name that matches a pattern, and the others. Without patterns all match. Case does not matter."""
    if not patterns:
        return tuple(things), ()
    wanted = [pattern.lower() for pattern in patterns]

    def is_wanted(one: T) -> bool:
        return any(fnmatchcase(name.lower(), pattern) for name in names(one) for pattern in wanted)

    return tuple(filter(is_wanted, things)), tuple(filterfalse(is_wanted, things))


def meaningless(things: Sequence[T], patterns: Sequence[str], names: Callable[[T], Sequence[str]]) -> str:
    """A fault for the first pattern that matches nothing, with the nearest names; empty if each matches something."""
    for pattern in patterns:
        if chosen(things, [pattern], names)[0]:
            continue
        known = {name.lower(): name for one in things for name in names(one) if name}
        near = [known[one] for one in nearest(pattern.lower().replace("*", ""), known, _NEAREST)]
        there = f"The nearest are: {', '.join(near)}" if near else f"There are, for example: {', '.join([*known.values()][:_NEAREST])}"
        return f"{pattern!r}, which `operations` names, is none of them. {there}."
    return ""
