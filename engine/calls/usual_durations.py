"""How long calls of a tool took lately, in this process."""

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable

_LAST = 20
_MOST = 10_000
_SHARE = 0.1
_LATELY_S = 60.0
"""What is older says nothing: a tool that is made elsewhere because it was slow is tried here again."""


class UsualDurations:
    """By tool and version; of the tools that were called last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: OrderedDict[tuple[str, str], deque[tuple[float, float]]] = OrderedDict()
        """When a call ended, and how long it took."""

    def note(self, tool_id: str, version: str, seconds: float) -> None:
        durations = self._seen.setdefault((tool_id, version), deque(maxlen=_LAST))
        durations.append((self._clock(), seconds))
        self._seen.move_to_end((tool_id, version))
        if len(self._seen) > _MOST:
            self._seen.popitem(last=False)

    def quick(self, tool_id: str, version: str) -> float | None:
        """The 10th percentile in seconds; None where there was no call lately."""
        since = self._clock() - _LATELY_S
        durations = sorted(seconds for at, seconds in self._seen.get((tool_id, version), ()) if at >= since)
        return durations[math.ceil(_SHARE * len(durations)) - 1] if durations else None
