"""A call that has ended, and the form of the effects in this folder."""

import asyncio
import math
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from engine.store.calls import CallTable
from engine.store.claims import Claim
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.records import CallRecord

_LAST = 20
_MOST = 10_000
_SHARE = 0.1
_LATELY_S = 60.0
"""Older durations do not count, so that a tool that was slow is tried in the lane again."""


class SettledCalls:
    """Waiters in this process, by call id."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, list[asyncio.Future[ToolResult]]] = defaultdict(list)

    @contextmanager
    def expected(self, call_id: str) -> Generator[asyncio.Future[ToolResult]]:
        """A future for the result, if the call is settled in this process during the block."""
        future: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()
        self._waiting[call_id].append(future)
        try:
            yield future
        finally:
            self._waiting[call_id].remove(future)
            if not self._waiting[call_id]:
                del self._waiting[call_id]

    def tell(self, result: ToolResult) -> None:
        """Call this only after the record is committed: then the result is final."""
        for future in self._waiting.get(result.call_id, ()):
            if not future.done():
                future.set_result(result)


class UsualDurations:
    """Recent durations of calls in this process, by tool and version, of the recently called tools."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: OrderedDict[tuple[str, str], deque[tuple[float, float]]] = OrderedDict()
        """When each call ended, and how long it took."""

    def note(self, tool_id: str, version: str, seconds: float) -> None:
        durations = self._seen.setdefault((tool_id, version), deque(maxlen=_LAST))
        durations.append((self._clock(), seconds))
        self._seen.move_to_end((tool_id, version))
        if len(self._seen) > _MOST:
            self._seen.popitem(last=False)

    def quick(self, tool_id: str, version: str) -> float | None:
        """The 10th percentile in seconds; None without a recent call."""
        since = self._clock() - _LATELY_S
        durations = sorted(seconds for at, seconds in self._seen.get((tool_id, version), ()) if at >= since)
        return durations[math.ceil(_SHARE * len(durations)) - 1] if durations else None


class NoteCrash(Protocol):
    """Notes a call during which the process of the tool ended, `alone` or not. Returns whether its input is quarantined now."""

    async def __call__(self, record: CallRecord, error: str, *, alone: bool) -> bool: ...


async def no_note(record: CallRecord, error: str, *, alone: bool) -> bool:  # noqa: ARG001 - as the protocol
    """For services without quarantine."""
    return False


@dataclass(frozen=True, slots=True)
class Places:
    """The targets of effects."""

    calls: CallTable
    settled: SettledCalls
    durations: UsualDurations = field(default_factory=UsualDurations)
    note_crash: NoteCrash = no_note


@dataclass(frozen=True, slots=True)
class Ended:
    """`record` has everything but the result; `was_started`: the request was sent."""

    record: CallRecord
    result: ToolResult
    was_started: bool
    claim: Claim | None = None
    """The claim of the settling process, if it has one."""
    is_unclaimed: bool = False
    """No process ever claimed the call: its id was generated."""


Run: TypeAlias = Callable[[Ended, Places], Awaitable[Ended]]
"""Returns the ended call, with the result that stands. Idempotent, because a step may be interrupted."""


@dataclass(frozen=True, slots=True)
class Effect:
    """`does` is its description."""

    name: str
    does: str
    run: Run
