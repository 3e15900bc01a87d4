"""For the upkeep of this host's running tools: their health, how long they were unused, their end."""

import math
import time
from collections import Counter
from dataclasses import dataclass

from engine.runtimes.running.instances import Instance, Instances, Life
from engine.runtimes.running.route_board import RouteBoard
from engine.runtimes.runtime import Examined, Expiring, Vitals
from toolagent.contracts.routes import RunState


@dataclass(frozen=True, slots=True)
class Kept:
    """One process or connection, and its tools. Times are in seconds."""

    life: Life

    @property
    def tool_ids(self) -> tuple[str, ...]:
        return tuple(sorted({instance.key[0] for instance in self.life}))

    @property
    def used(self) -> float:
        """When a call of any of its tools ended last, or it was started, by the monotonic clock."""
        return max(instance.used for instance in self.life)

    @property
    def unused_s(self) -> float:
        return time.monotonic() - self.used

    @property
    def ttl_s(self) -> float:
        """How long its runtime keeps it without use; infinity: the runtime sets no limit."""
        runtime = self._first.runtime
        return runtime.ttl_s if isinstance(runtime, Expiring) else math.inf

    @property
    def failed_checks(self) -> int:
        """Failed health checks in a row."""
        return self._first.failed_checks

    @property
    def has_process(self) -> bool:
        return self._first.running.pid is not None

    @property
    def _first(self) -> Instance:
        return self.life[0]

    async def vitals(self, timeout_s: float) -> Vitals:
        """Asks for its health, and counts failed checks."""
        first = self._first
        if not await first.runtime.is_alive(first.running):
            found = Vitals(is_well=False, said="it has ended")
        elif isinstance(first.runtime, Examined):
            found = await first.runtime.vitals(first.running, first.source, timeout_s)
        else:
            found = Vitals(is_well=True)
        for instance in self.life:
            instance.failed_checks = 0 if found.is_well else instance.failed_checks + 1
        return found


class Keeping:
    """The upkeep of one host's instances. The next call of an ended tool starts it anew."""

    def __init__(self, instances: Instances, board: RouteBoard) -> None:
        self._instances, self._board = instances, board
        self._stops = Counter[str]()

    def all(self) -> tuple[Kept, ...]:
        return tuple(map(Kept, self._instances.lives()))

    def is_in_use(self, kept: Kept) -> bool:
        """Whether it serves calls, or one of its tools is being started, usually for a call."""
        return any(self._instances.serves(one) or self._instances.is_starting(one.key[0]) for one in kept.life)

    def is_starting(self, tool_id: str) -> bool:
        return self._instances.is_starting(tool_id)

    def stops(self, tool_id: str) -> int:
        """How often users have stopped the tool. A drain and a removal by an import do not count."""
        return self._stops[tool_id]

    def note_stop(self, tool_id: str) -> None:
        """Counts a stop by a user."""
        self._stops[tool_id] += 1

    def healthy(self, kept: Kept) -> None:
        """Records a successful health check."""
        for tool_id in kept.tool_ids:
            self._board.answered(tool_id)

    async def retire(self, kept: Kept) -> bool:
        """Stops an unused process. Returns False if a call came meanwhile. Raises StoreUnavailableError."""
        return await self._instances.retire(kept.life)

    async def give_up(self, kept: Kept, why: str) -> bool:
        """Ends an unhealthy process, which raises an alert. Returns False if it serves calls."""
        if self.is_in_use(kept):
            return False
        await self._instances.replace(kept.life[0], RunState.ERROR, why)
        return True
