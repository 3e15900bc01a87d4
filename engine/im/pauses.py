"""Growing pauses between attempts, with jitter."""

import secrets

_FIRST_S = 0.5
_random = secrets.SystemRandom()


class Pauses:
    """Each pause is at most twice as long as the one before, and at most `longest_s` seconds."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s, self._next_s = longest_s, min(_FIRST_S, longest_s)

    def next(self) -> float:
        """Seconds: a random part, from half to all, of the grown pause."""
        pause_s, self._next_s = self._next_s, min(2 * self._next_s, self._longest_s)
        return pause_s * _random.uniform(0.5, 1)

    def reset(self) -> None:
        self._next_s = min(_FIRST_S, self._longest_s)
