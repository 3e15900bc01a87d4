"""What the log says of others' messages: whoever floods us does not flood it."""

import time
from collections import Counter

import structlog

_BETWEEN_S = 1.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Complaints:
    """Of each event one in a second; the next one says how many were left out."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._left_out: Counter[str] = Counter()

    def warn(self, event: str, **told: object) -> None:
        if time.monotonic() - self._last.get(event, -_BETWEEN_S) < _BETWEEN_S:
            self._left_out[event] += 1
            return
        self._last[event] = time.monotonic()
        if left_out := self._left_out.pop(event, 0):
            told["left_out"] = left_out
        _log.warning(event, **told)
