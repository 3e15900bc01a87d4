"""Which of several things a task means, by names with `*` for any letters."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from toolagent.core.suggestions import nearest

_NEAREST = 5

T = TypeVar("T")


def chosen(things: Sequence[T], patterns: Sequence[str], names: Callable[[T], Sequence[str]]) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """Those with a name that one of the patterns means, and the others; without patterns all of them. Small letters mean large ones too."""
    if not patterns:
        return tuple(things), ()
    wanted = [pattern.lower() for pattern in patterns]
    is_wanted = [any(fnmatchcase(name.lower(), pattern) for name in names(one) for pattern in wanted) for one in things]
    return (
        tuple(one for one, yes in zip(things, is_wanted, strict=True) if yes),
        tuple(one for one, yes in zip(things, is_wanted, strict=True) if not yes),
    )


def meaningless(things: Sequence[T], patterns: Sequence[str], names: Callable[[T], Sequence[str]]) -> str:
    """Which of the patterns means none of them, and what comes nearest to it; empty where each means something."""
    for pattern in patterns:
        if chosen(things, [pattern], names)[0]:
            continue
        known = {name.lower(): name for one in things for name in names(one) if name}
        near = [known[one] for one in nearest(pattern.lower().replace("*", ""), known, _NEAREST)]
        there = f"The nearest are: {', '.join(near)}" if near else f"There are, for example: {', '.join([*known.values()][:_NEAREST])}"
        return f"{pattern!r}, which `operations` names, is none of them. {there}."
    return ""
