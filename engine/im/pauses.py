"""Pauses between attempts: growing, and never the same for all who lost the same server."""

import secrets

_FIRST_S = 0.5
_random = secrets.SystemRandom()


class Pauses:
    """Each at most twice as long as the one before, at most `longest_s` seconds."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._next_s = min(_FIRST_S, longest_s)

    def next(self) -> float:
        """Seconds, between half and all of what it has grown to."""
        pause_s, self._next_s = self._next_s, min(2 * self._next_s, self._longest_s)
        return pause_s * _random.uniform(0.5, 1)

    def reset(self) -> None:
        self._next_s = min(_FIRST_S, self._longest_s)
