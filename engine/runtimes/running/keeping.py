"""What runs on this host, as who looks after it sees it: how it is, how long it was unused, and its end."""

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
    """One process, or connection, and the tools in it. Times are in seconds."""

    life: Life

    @property
    def tool_ids(self) -> tuple[str, ...]:
        return tuple(sorted({instance.key[0] for instance in self.life}))

    @property
    def used(self) -> float:
        """By the monotonic clock, when a call of any of its tools ended last, or it was started."""
        return max(instance.used for instance in self.life)

    @property
    def unused_s(self) -> float:
        return time.monotonic() - self.used

    @property
    def ttl_s(self) -> float:
        """For how long its kind is kept without use; infinity: as long as anything is."""
        runtime = self._first.runtime
        return runtime.ttl_s if isinstance(runtime, Expiring) else math.inf

    @property
    def failed_checks(self) -> int:
        """In a row."""
        return self._first.failed_checks

    @property
    def has_process(self) -> bool:
        return self._first.running.pid is not None

    @property
    def _first(self) -> Instance:
        return self.life[0]

    async def vitals(self, timeout_s: float) -> Vitals:
        """Ask it, and remember what came of it."""
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
    """Of the instances of one host. What it ends, the next call starts anew."""

    def __init__(self, instances: Instances, board: RouteBoard) -> None:
        self._instances, self._board = instances, board
        self._stops = Counter[str]()

    def all(self) -> tuple[Kept, ...]:
        return tuple(map(Kept, self._instances.lives()))

    def is_in_use(self, kept: Kept) -> bool:
        """Whether calls are in it, or one of its tools is being started: for a call, as a rule."""
        return any(self._instances.serves(one) or self._instances.is_starting(one.key[0]) for one in kept.life)

    def is_starting(self, tool_id: str) -> bool:
        return self._instances.is_starting(tool_id)

    def stops(self, tool_id: str) -> int:
        """How often somebody has stopped the tool. A drain, and an import that takes it out, are nobody."""
        return self._stops[tool_id]

    def note_stop(self, tool_id: str) -> None:
        """Somebody stops the tool."""
        self._stops[tool_id] += 1

    def healthy(self, kept: Kept) -> None:
        """A check has found it well."""
        for tool_id in kept.tool_ids:
            self._board.answered(tool_id)

    async def retire(self, kept: Kept) -> bool:
        """Stop it because it is unused. Whether that was so: not when a call came meanwhile. Raises StoreUnavailableError."""
        return await self._instances.retire(kept.life)

    async def give_up(self, kept: Kept, why: str) -> bool:
        """End it because it is not well, which is an alert. Whether that was done: not while it serves calls."""
        if self.is_in_use(kept):
            return False
        await self._instances.replace(kept.life[0], RunState.ERROR, why)
        return True
