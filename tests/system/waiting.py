"""Waiting for something to come true, with a bound."""

import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["wait_until"]

_LOOK_S = 0.05

FoundT = TypeVar("FoundT")


def wait_until(look: Callable[[], FoundT | None], what: str, bound_s: float = 60.0, look_s: float = _LOOK_S) -> FoundT:
    """What `look` finds, once that is something true. Raises AssertionError after `bound_s` seconds, naming `what` was awaited.

    A request every `look_s` is the service's work too: what takes many seconds and then stays needs few.
    """
    until = time.monotonic() + bound_s
    while not (found := look()):
        if time.monotonic() > until:
            raise AssertionError(f"Not within {bound_s:g} s: {what}. Last seen: {found!r}")
        time.sleep(look_s)
    return found
