"""How long calls of a tool took lately, in this process."""

import math
from collections import OrderedDict, deque

_LAST = 20
_MOST = 10_000
_SHARE = 0.1


class UsualDurations:
    """By tool and version; of the tools that were called last."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def note(self, tool_id: str, version: str, seconds: float) -> None:
        durations = self._seen.setdefault((tool_id, version), deque(maxlen=_LAST))
        durations.append(seconds)
        self._seen.move_to_end((tool_id, version))
        if len(self._seen) > _MOST:
            self._seen.popitem(last=False)

    def quick(self, tool_id: str, version: str) -> float | None:
        """The 10th percentile in seconds; None without any call."""
        durations = self._seen.get((tool_id, version))
        if not durations:
            return None
        return sorted(durations)[math.ceil(_SHARE * len(durations)) - 1]
