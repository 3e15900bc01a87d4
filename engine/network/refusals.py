"""What the proxy refuses to a program that serves many calls, told to each call that it may concern."""

import contextlib
from collections.abc import Generator

from engine.network.proxy_rules import Asked

__all__ = ["Refusals"]

_MOST = 100


class Refusals:
    """What the proxy refuses to one server, for whoever listens. What nobody listened to is kept for the next who does."""

    def __init__(self) -> None:
        self._unheard: dict[str, None] = {}
        self._listening: list[dict[str, None]] = []

    def tell(self, asked: Asked) -> None:
        if not asked.allowed:
            for heard in self._listening or [self._unheard]:
                if len(heard) < _MOST:
                    heard[f"{asked.host}:{asked.port}: {asked.reason}"] = None

    def unheard(self) -> tuple[str, ...]:
        """What nobody listened to so far. It is told once."""
        told, self._unheard = tuple(self._unheard), {}
        return told

    @contextlib.contextmanager
    def heard(self) -> Generator[dict[str, None]]:
        """Grows while the block lasts. May be another call's doing: both have it."""
        heard, self._unheard = self._unheard, {}
        self._listening.append(heard)
        try:
            yield heard
        finally:
            # By identity: two that heard the same are equal.
            self._listening = [other for other in self._listening if other is not heard]
