"""Waiting, with a time limit, until something is true."""

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["wait_until"]

_FIRST_LOOK_S, _LAST_LOOK_S = 0.05, 0.25
_SELDOMER = 10

FoundT = TypeVar("FoundT")


def wait_until(look: Callable[[], FoundT | None], what: str, bound_s: float = 60.0, look_s: float | None = None) -> FoundT:
    """The first true value of `look`. Raises AssertionError, naming `what`, after `bound_s` seconds.

    Looking costs processor time, so the pauses grow; with `look_s` they do not.
    """
    began = time.monotonic()
    while not (found := look()):
        if (passed_s := time.monotonic() - began) > bound_s:
            raise AssertionError(f"Not within {bound_s:g} s: {what}. Last seen: {found!r}")
        time.sleep(look_s or min(max(passed_s / _SELDOMER, _FIRST_LOOK_S), _LAST_LOOK_S))
    return found
