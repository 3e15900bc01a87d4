"""Whether this process takes new calls, and which calls run in it."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager

from toolagent.contracts.manifest import ToolManifest
from toolagent_service.calls.dispatch import bucket_of


class Intake:
    """A draining host takes no new call that another host may take. Calls are counted by `buckets`."""

    def __init__(self, buckets: Collection[str] = ()) -> None:
        self._buckets = frozenset(buckets)
        self._calls, self._tools = Counter[str](), Counter[str]()
        self._ended: dict[str, float] = {}
        self._opened = asyncio.Event()
        self._opened.set()
        self._closed_at = 0.0
        self.mark: str | None = None
        """The mark of the ordered drain."""
        self.drained_of: str | None = None
        """The mark of a completed drain: nothing is left."""

    @property
    def is_open(self) -> bool:
        return self._opened.is_set()

    @property
    def closed_s(self) -> float:
        """Seconds since it was closed."""
        return 0.0 if self.is_open else time.monotonic() - self._closed_at

    @property
    def calls(self) -> Mapping[str, int]:
        """Running calls, by bucket."""
        return {bucket: number for bucket, number in self._calls.items() if number}

    def unused_s(self, tool_id: str) -> float:
        """Seconds since the last call of the tool ended; infinity if there was none."""
        if tool_id in self._tools:
            return 0.0
        return time.monotonic() - self._ended[tool_id] if tool_id in self._ended else math.inf

    def heed(self, mark: str | None) -> None:
        """Closes for the drain with this mark; None opens."""
        if mark == self.mark:
            return
        self.mark, self.drained_of = mark, None
        if mark is None:
            self._opened.set()
        elif self.is_open:
            self._opened.clear()
            self._closed_at = time.monotonic()

    async def opened(self) -> None:
        """Waits until it is open."""
        await self._opened.wait()

    @contextmanager
    def held(self, manifest: ToolManifest) -> Generator[None]:
        """Counts a call of this tool during the block."""
        bucket, tool_id = bucket_of(manifest, self._buckets), manifest.tool_id
        self._calls[bucket] += 1
        self._tools[tool_id] += 1
        try:
            yield
        finally:
            self._calls[bucket] -= 1
            self._tools[tool_id] -= 1
            self._ended[tool_id] = time.monotonic()
            if not self._tools[tool_id]:
                del self._tools[tool_id]
