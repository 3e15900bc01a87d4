"""The lane of a front door: its calls go to Temporal in batches and are made in this process, each as a task of its own.

A call is in flight from being taken until its result is recorded or a workflow of its own has it. There is one flight by call id.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engine.store.claims import Claim
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.lanes import LaneFigures
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.calls.lanes import LaneUnreachableError
from toolagent_service.contracts.lanes import LaneBatch, LaneCall, LaneEnd, LaneStatus

BUDGET_S = 0.1
"""How long a batch waits for its calls; what is not over by then goes on with a workflow of its own."""

MOST_CALLS = 64
_MOST_BYTES = 256 * 1024
_MOST_WAITING = 2048
_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0
_LATELY_S = 10.0


class LaneFullError(Exception):
    """More calls wait than are taken; this one was not."""


@dataclass(eq=False, slots=True)
class Flight:
    """A call on its way. `done` gets its result; None: a workflow of its own has it. `claim` is ours where the call was accepted."""

    call_id: str
    call: ToolCall
    fingerprint: str
    size: int
    claim: Claim | None = None
    done: "asyncio.Future[ToolResult | None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    task: "asyncio.Task[None] | None" = None
    moving: "asyncio.Task[None] | None" = None
    is_cancelled: bool = False

    def cancel(self) -> None:
        """Somebody wants the call to end. It ends with a result, which says how far it was."""
        self.is_cancelled = True
        if self.task is not None:
            self.task.cancel()


class LaneMaker(Protocol):
    async def prepare(self) -> None:
        """Before the calls of a batch."""
        ...

    async def make(self, flight: Flight, workflow_id: str, run_id: str) -> ToolResult | None:
        """The recorded result; None where the call is to have a workflow of its own. Raises nothing but CancelledError."""
        ...


Send = Callable[[LaneBatch], Awaitable[None]]
"""Hands a batch to the lane's workflow and returns when that is done with it. Raises LaneUnreachableError."""

Move = Callable[[Flight], Awaitable[None]]
"""Starts the workflow of a call. Harmless to repeat. Raises LaneUnreachableError, StoreUnavailableError."""


class Lane:
    """`run` is the front door's side, `perform` the side of Temporal. To be closed with `close`."""

    def __init__(self, maker: LaneMaker, send: Send, move: Move, *, budget_s: float = BUDGET_S, most_waiting: int = _MOST_WAITING) -> None:
        self._maker, self._send, self._move_to_workflow = maker, send, move
        self._budget_s, self._most_waiting = budget_s, most_waiting
        self._flights: dict[str, Flight] = {}
        self._waiting: deque[Flight] = deque()
        self._sender: asyncio.Task[None] | None = None
        self._calls, self._moved, self._last_error = 0, 0, ""
        self._lately: deque[tuple[float, int]] = deque()

    @property
    def figures(self) -> LaneFigures:
        began_at = time.monotonic() - _LATELY_S
        while self._lately and self._lately[0][0] < began_at:
            self._lately.popleft()
        per_second = round(sum(calls for _, calls in self._lately) / _LATELY_S, 1)
        return LaneFigures(
            calls=self._calls, moved=self._moved, waiting=len(self._waiting), per_second=per_second, last_error=self._last_error
        )

    def flight(self, call_id: str) -> Flight | None:
        return self._flights.get(call_id)

    @property
    def gone_on(self) -> tuple[Flight, ...]:
        """Calls that are made here and have a workflow of their own."""
        return tuple(flight for flight in self._flights.values() if flight.moving is not None and flight.task is not None)

    def require_room(self) -> None:
        """Raises LaneFullError."""
        if len(self._waiting) >= self._most_waiting:
            raise LaneFullError(f"{len(self._waiting)} calls wait for their turn already.")

    def take(self, flight: Flight) -> Flight:
        """The flight of this call id: this one, or the one that is on its way."""
        known = self._flights.setdefault(flight.call_id, flight)
        if known is flight:
            self._waiting.append(flight)
            if self._sender is None or self._sender.done():
                self._sender = asyncio.create_task(self._send_all(), name="lane")
        return known

    def leave(self, flight: Flight) -> bool:
        """Take a call back that no batch has taken; False when it is too late for that."""
        if flight not in self._waiting:
            return False
        self._waiting.remove(flight)
        self._end(flight, None)
        return True

    async def perform(self, asked: Sequence[LaneCall], workflow_id: str, run_id: str) -> tuple[LaneEnd, ...]:
        """Make the calls of a batch, as far as the budget goes. Done again, nothing is made twice."""
        flights = [flight for call in asked if (flight := self._flights.get(call.call_id)) is not None]
        if flights:
            self._lately.append((time.monotonic(), len(flights)))
            await self._prepared()
        begun = [self._begun(flight, workflow_id, run_id) for flight in flights]
        if begun:
            await asyncio.wait(begun, timeout=self._budget_s)
        for flight in flights:
            if not flight.done.done():
                self._move_later(flight)
        known = {flight.call_id: flight for flight in flights}
        return tuple(LaneEnd(call_id=call.call_id, status=_status(known.get(call.call_id))) for call in asked)

    async def close(self) -> None:
        """Calls that no batch has taken end without a result; those that are made are waited for by nobody."""
        flights = [*self._flights.values()]
        known = (self._sender, *(flight.task for flight in flights), *(flight.moving for flight in flights))
        tasks = [task for task in known if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for flight in flights:
            self._end(flight, None)

    async def _send_all(self) -> None:
        pause_s = _PAUSE_S
        while self._waiting:
            batch = self._next_batch()
            try:
                await self._send(LaneBatch(calls=tuple(map(_as_sent, batch))))
                pause_s = _PAUSE_S
            except LaneUnreachableError as error:
                self._last_error = str(error)
                self._waiting.extendleft(flight for flight in reversed(batch) if flight.task is None and not flight.done.done())
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _next_batch(self) -> list[Flight]:
        batch: list[Flight] = []
        size = 0
        while self._waiting and len(batch) < MOST_CALLS and (not batch or size + self._waiting[0].size <= _MOST_BYTES):
            batch.append(self._waiting.popleft())
            size += batch[-1].size
        return batch

    async def _prepared(self) -> None:
        try:
            await self._maker.prepare()
        except StoreUnavailableError as error:
            self._last_error = str(error)

    def _begun(self, flight: Flight, workflow_id: str, run_id: str) -> "asyncio.Task[None]":
        if flight.task is None:
            self._calls += 1
            flight.task = asyncio.create_task(self._fly(flight, workflow_id, run_id), name=flight.call_id)
            flight.task.add_done_callback(lambda task: self._see_cut_off(flight) if task.cancelled() else None)
        return flight.task

    async def _fly(self, flight: Flight, workflow_id: str, run_id: str) -> None:
        result = await self._maker.make(flight, workflow_id, run_id)
        if result is not None:
            self._end(flight, result)
        elif self._move_later(flight).done():
            self._end(flight, None)

    def _see_cut_off(self, flight: Flight) -> None:
        """It was cancelled where it could not say how it ends any more: its workflow does."""
        if flight.moving is not None and flight.moving.done():
            self._end(flight, None)

    def _move_later(self, flight: Flight) -> "asyncio.Task[None]":
        """Give the call a workflow of its own. The lane does not wait for that; the call does."""
        if flight.moving is None:
            self._moved += 1
            flight.moving = asyncio.create_task(self._move(flight), name=f"move {flight.call_id}")
        return flight.moving

    async def _move(self, flight: Flight) -> None:
        pause_s = _PAUSE_S
        while not flight.done.done():
            try:
                await self._move_to_workflow(flight)
                break
            except (LaneUnreachableError, StoreUnavailableError) as error:
                self._last_error = str(error)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        if flight.task is None or flight.task.done():
            self._end(flight, None)

    def _end(self, flight: Flight, result: ToolResult | None) -> None:
        if self._flights.get(flight.call_id) is flight:
            del self._flights[flight.call_id]
        if not flight.done.done():
            flight.done.set_result(result)


def _as_sent(flight: Flight) -> LaneCall:
    return LaneCall(call_id=flight.call_id, tool_id=flight.call.tool_id, call=flight.call.model_dump(mode="json", exclude_defaults=True))


def _status(flight: Flight | None) -> LaneStatus:
    if flight is None:
        return "unknown"
    if not flight.done.done():
        return "moved"
    result = flight.done.result()
    return result.status if result is not None else "moved"
