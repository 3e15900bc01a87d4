"""Which of several things a task means, by names with `*` for any letters."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

__all__ = ["chosen"]

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
