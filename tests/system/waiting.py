"""Waiting for something to come true, with a bound."""

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["wait_until"]

_FIRST_LOOK_S, _LAST_LOOK_S = 0.05, 0.25
_SELDOMER = 10

FoundT = TypeVar("FoundT")


def wait_until(look: Callable[[], FoundT | None], what: str, bound_s: float = 60.0, look_s: float | None = None) -> FoundT:
    """What `look` finds, once that is something true. Raises AssertionError after `bound_s` seconds, naming `what` was awaited.

    A look is the service's work too, or that of reading all processes: it comes ever more seldom, or each `look_s`.
    """
    began = time.monotonic()
    while not (found := look()):
        if (passed_s := time.monotonic() - began) > bound_s:
            raise AssertionError(f"Not within {bound_s:g} s: {what}. Last seen: {found!r}")
        time.sleep(look_s or min(max(passed_s / _SELDOMER, _FIRST_LOOK_S), _LAST_LOOK_S))
    return found
