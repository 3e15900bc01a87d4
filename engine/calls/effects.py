"""What follows when a call has ended: one function an effect, and one line of EFFECTS, in their order."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

from engine.calls.records import events_of
from engine.store.calls import CallTable
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.records import CallRecord

__all__ = ["EFFECTS", "Effect", "Ended", "Places", "SettledCalls", "settled"]


class SettledCalls:
    """Those who wait in this process, by call id. Once the record is committed the result stands: whatever dies then, it ends with it."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, list[asyncio.Future[ToolResult]]] = defaultdict(list)

    @contextmanager
    def expected(self, call_id: str) -> Generator[asyncio.Future[ToolResult]]:
        """A future that gets the result when the call is settled in this process during the block."""
        future: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()
        self._waiting[call_id].append(future)
        try:
            yield future
        finally:
            self._waiting[call_id].remove(future)
            if not self._waiting[call_id]:
                del self._waiting[call_id]

    def tell(self, result: ToolResult) -> None:
        """To be said when the record is committed, not before."""
        for future in self._waiting.get(result.call_id, ()):
            if not future.done():
                future.set_result(result)


@dataclass(frozen=True, slots=True)
class Places:
    """Where effects write, and who is told."""

    calls: CallTable
    settled: SettledCalls


@dataclass(frozen=True, slots=True)
class Ended:
    """`record` is what is known of the call besides its result; `was_started`: its request was sent."""

    record: CallRecord
    result: ToolResult
    was_started: bool


Run: TypeAlias = Callable[[Ended, Places], Awaitable[Ended]]
"""Gives it on, with the result that stands. Done again it changes nothing: a step may be lost in the middle."""


@dataclass(frozen=True, slots=True)
class Effect:
    """`does` says it in words."""

    name: str
    does: str
    run: Run


async def settled(ended: Ended, places: Places) -> ToolResult:
    """The result that stands, after all of it."""
    for effect in EFFECTS:
        ended = await effect.run(ended, places)
    return ended.result


async def _record(ended: Ended, places: Places) -> Ended:
    """Once, whoever settles the call again."""
    stands = await places.calls.settle(ended.record, ended.result, events_of(ended.result, started=ended.was_started))
    return replace(ended, result=stands)


async def _tell(ended: Ended, places: Places) -> Ended:
    places.settled.tell(ended.result)
    return ended


EFFECTS: tuple[Effect, ...] = (
    Effect("recording", "writes result and events, unless the call has a result: then that stands", _record),
    Effect("telling", "hands the result to who waits for it in this process", _tell),
)
"""Nobody is told of what is not recorded."""
