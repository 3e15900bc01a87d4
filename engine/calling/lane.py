"""The lane of a front door: its calls go to Temporal in batches and are made in this process, each as a task of its own.

A call is in flight from being taken until its result is recorded or a workflow of its own has it. There is one flight by call id.
"""

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import structlog
from pydantic_core import from_json

from engine.store.claims import Claim
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.lanes import LaneFigures
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.calls.lanes import BatchRefusedError, LaneUnreachableError
from toolagent_service.contracts.lanes import LaneBatch, LaneCall, LaneEnd, LaneStatus

BUDGET_S = 0.1
"""How long a batch waits for its calls, and how long a call is made before it gets a workflow of its own."""

MOST_CALLS = 64
_MOST_BYTES = 256 * 1024
_MOST_WAITING = 2048
_AT_ONCE = 8
"""Calls of one tool that are made at once. More would wait inside the tool, and look slow."""

_MOVES_AT_ONCE = 2
"""A call that ends while it waits to move needs no workflow: what looks slow because much is asked costs little more."""

_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0
_LATELY_S = 10.0
_MOST_REFUSALS = 3
"""How often a batch is refused before its calls are sent one by one."""


class LaneFullError(Exception):
    """More calls wait than are taken; this one was not."""


@dataclass(eq=False, slots=True)
class Flight:
    """A call on its way. Its `claim` is in the database once it `is_accepted`.

    `text` is its JSON, for who reads its batch. `done` gets its result; None: a workflow of its own has it.
    """

    claim: Claim
    call: ToolCall
    text: bytes = b"null"
    is_accepted: bool = False
    done: "asyncio.Future[ToolResult | None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    task: "asyncio.Task[None] | None" = None
    moving: "asyncio.Task[None] | None" = None
    has_begun: bool = False
    is_moved: bool = False
    is_late: bool = False
    is_cancelled: bool = False
    is_settling: bool = False
    """What the tool said is written down: nothing can end that any more."""
    came_at: float = field(default_factory=time.monotonic)

    @property
    def call_id(self) -> str:
        return self.claim.call_id

    @property
    def as_sent(self) -> LaneCall:
        return LaneCall(call_id=self.call_id, tool_id=self.call.tool_id, call=from_json(self.text))

    @property
    def is_past(self) -> bool:
        return self.task is not None or self.done.done()

    @property
    def is_made(self) -> bool:
        """Whether its tool works on it."""
        return self.task is not None and not self.task.done()

    def cancel(self) -> None:
        """Have the call end: with a result that says how far it was, or by a workflow that says that it was not made."""
        if self.task is not None and not self.is_cancelled and not self.is_settling:
            self.task.cancel()
        self.is_cancelled = True


Work = Callable[[], AbstractAsyncContextManager[None]]
"""The tool is asked in this block, once."""


class LaneMaker(Protocol):
    async def prepare(self) -> None:
        """Before the calls of a batch."""
        ...

    async def make(self, flight: Flight, workflow_id: str, run_id: str, work: Work) -> ToolResult | None:
        """The recorded result; None where the call is to have a workflow of its own. Raises CancelledError: so it is to have one."""
        ...


Send = Callable[[LaneBatch], Awaitable[bool]]
"""Returns when the lane is done with the batch: whether its run is about to end. Raises LaneUnreachableError, BatchRefusedError."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Move = Callable[[Flight], Awaitable[None]]
"""Starts the workflow of a call. Harmless to repeat. Raises LaneUnreachableError, StoreUnavailableError."""


class Lane:
    """`run` is the front door's side, `perform` the side of Temporal. To be closed with `close`."""

    def __init__(self, maker: LaneMaker, send: Send, move: Move, *, budget_s: float = BUDGET_S, most_waiting: int = _MOST_WAITING) -> None:
        self._maker, self._send, self._move_to_workflow = maker, send, move
        self._budget_s, self._most_waiting = budget_s, most_waiting
        self._flights: dict[str, Flight] = {}
        self._places = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(_AT_ONCE))
        self._moves = asyncio.Semaphore(_MOVES_AT_ONCE)
        self._waiting: deque[Flight] = deque()
        self._sender: asyncio.Task[None] | None = None
        self._unanswered: asyncio.Task[None] | None = None
        self._due: asyncio.Future[None] | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._calls, self._begun, self._moved, self._last_error, self._is_closed = 0, 0, 0, "", False
        self._expected, self._asking, self._batch, self._is_made, self._is_ending = 0, 0, tuple[Flight, ...](), False, False
        self._lately: deque[tuple[float, int]] = deque()
        self._asked_at: float | None = None

    @property
    def figures(self) -> LaneFigures:
        began_at = time.monotonic() - _LATELY_S
        while self._lately and self._lately[0][0] < began_at:
            self._lately.popleft()
        rate = round(sum(calls for _, calls in self._lately) / _LATELY_S, 1)
        return LaneFigures(calls=self._calls, moved=self._moved, waiting=self._not_begun, per_second=rate, last_error=self._last_error)

    @property
    def _not_begun(self) -> int:
        return len(self._waiting) + self._calls - self._begun

    @property
    def silent_s(self) -> float:
        """How long Temporal has not answered."""
        return time.monotonic() - self._asked_at if self._asked_at is not None else 0.0

    def flight(self, call_id: str) -> Flight | None:
        return self._flights.get(call_id)

    def hand_on(self, flight: Flight) -> None:
        """Give a call that was accepted a workflow, unless it is on its way here. Who asks for it meanwhile waits for that."""
        if self._flights.setdefault(flight.call_id, flight) is flight:
            self._move_later(flight)

    @property
    def gone_on(self) -> tuple[Flight, ...]:
        """Calls that are made here and have a workflow of their own."""
        return tuple(flight for flight in self._flights.values() if flight.is_moved)

    @property
    def delayed(self) -> tuple[Flight, ...]:
        """Calls that were accepted, and have been here for longer than the budget without a workflow."""
        before = time.monotonic() - self._budget_s
        return tuple(flight for flight in self._flights.values() if flight.is_accepted and not flight.is_moved and flight.came_at < before)

    @contextmanager
    def room(self) -> Generator[None]:
        """A place is kept for a call that is taken in the block. Raises LaneFullError."""
        if self._not_begun + self._expected >= self._most_waiting:
            raise LaneFullError(f"{self._not_begun} calls are waiting already.")
        self._expected += 1
        try:
            yield
        finally:
            self._expected -= 1

    def take(self, flight: Flight) -> Flight:
        """The flight of this call id: this one, or the one that is on its way."""
        known = self._flights.setdefault(flight.call_id, flight)
        if known is flight:
            self._waiting.append(flight)
            self._look_if_due()
            if self._sender is None or self._sender.done():
                self._asked_at = None
                self._sender = asyncio.create_task(self._send_all(), name="lane")
        return known

    def leave(self, flight: Flight) -> bool:
        """Take a call back that was not begun; False when it is too late for that. A batch that names it does nothing for it."""
        if flight.task is not None or flight.moving is not None:
            return False
        if flight in self._waiting:
            self._waiting.remove(flight)
        self._end(flight, None)
        return True

    async def perform(self, asked: Sequence[LaneCall], workflow_id: str, run_id: str) -> tuple[LaneEnd, ...]:
        """Make the calls of a batch, as far as the budget goes. Done again, nothing is made twice."""
        if any(call.call_id in self._flights for call in asked):
            await asyncio.shield(self._preparing or self._prepared())
        # Not before: who is taken back meanwhile was told that it is not made.
        flights = [flight for call in asked if (flight := self._flights.get(call.call_id)) is not None]
        # What moves has a workflow that makes it, or gets one: a batch that was refused may come all the same.
        tasks = [self._task_of(flight, workflow_id, run_id) for flight in flights if flight.task is not None or flight.moving is None]
        if tasks:
            self._lately.append((time.monotonic(), len(tasks)))
            await asyncio.wait(tasks, timeout=self._budget_s)
        self._is_made = self._is_made or all(flight.is_past for flight in self._batch)  # an earlier batch may come again
        self._look_if_due()
        known = {flight.call_id: flight for flight in flights}
        return tuple(LaneEnd(call_id=call.call_id, status=_status(known.get(call.call_id))) for call in asked)

    async def close(self) -> None:
        """Calls that no batch has taken end without a result; those that are made are waited for by nobody."""
        self._is_closed = True
        flights = [*self._flights.values()]
        known = (self._sender, self._unanswered, *(flight.task for flight in flights), *(flight.moving for flight in flights))
        tasks = [task for task in known if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for flight in flights:
            self._end(flight, None)

    async def _send_all(self) -> None:
        pause_s, refusals, singly = _PAUSE_S, 0, 0
        while self._waiting:
            batch = self._next_batch(1 if singly else MOST_CALLS)
            singly = max(singly - 1, 0)
            # After all of them have come, and while Temporal is asked.
            self._preparing = asyncio.create_task(self._prepared(), name="prepare a batch")
            try:
                await self._told(batch)
                pause_s, refusals = _PAUSE_S, refusals if singly else 0
            except Exception as error:  # noqa: BLE001 - whatever it is, the calls of the batch wait for their turn
                self._note(error)
                refusals += isinstance(error, BatchRefusedError) or not isinstance(error, LaneUnreachableError | StoreUnavailableError)
                left = [flight for flight in batch if not flight.is_past]
                if refusals >= _MOST_REFUSALS and len(batch) == 1:
                    for flight in left:
                        self._move_later(flight)
                    continue
                self._waiting.extendleft(reversed(left))
                if refusals >= _MOST_REFUSALS:
                    # One of them may be what is refused: it gets a workflow, and keeps the others from nothing.
                    singly = len(left)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _told(self, batch: Sequence[Flight]) -> None:
        """Returns once the lane is done with the batch; or, unless its run is known to end, when its calls are made and as many wait."""
        self._batch, self._is_made, self._due = tuple(batch), False, asyncio.get_running_loop().create_future()
        answer = asyncio.create_task(self._answered(self._sent(batch)), name="send a batch")
        try:
            await asyncio.wait((answer, self._due), return_when=asyncio.FIRST_COMPLETED)
            if self._unanswered is not None and not answer.done():
                await asyncio.wait((answer, self._unanswered), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            answer.cancel()
            await asyncio.gather(answer, return_exceptions=True)
            raise
        if answer.done():
            answer.result()
        else:
            self._unanswered = answer
            answer.add_done_callback(self._note_failure)

    def _note_failure(self, answer: "asyncio.Task[None]") -> None:
        """Of a batch whose calls were made: they have their ends."""
        self._unanswered = None
        if not answer.cancelled() and isinstance(error := answer.exception(), Exception):
            self._note(error)

    def _look_if_due(self) -> None:
        is_due = self._is_made and not self._is_ending and len(self._waiting) >= len(self._batch)
        if is_due and self._due is not None and not self._due.done():
            self._due.set_result(None)

    async def _sent(self, batch: Sequence[Flight]) -> None:
        self._is_ending = await self._send(LaneBatch(calls=tuple(flight.as_sent for flight in batch)))

    def _note(self, error: Exception) -> None:
        is_foreseen = isinstance(error, LaneUnreachableError | StoreUnavailableError)
        self._last_error = str(error) if is_foreseen else type(error).__name__
        if not is_foreseen:
            _log.warning("lane_fails", then="it is tried again", exc_info=error)

    async def _answered(self, asking: Awaitable[None]) -> None:
        self._asking += 1
        self._asked_at = self._asked_at or time.monotonic()
        try:
            await asking
            self._asked_at = time.monotonic() if self._asking > 1 else None
        finally:
            self._asking -= 1

    def _next_batch(self, most: int) -> list[Flight]:
        batch: list[Flight] = []
        size = 0
        while self._waiting and len(batch) < most and (not batch or size + len(self._waiting[0].text) <= _MOST_BYTES):
            batch.append(self._waiting.popleft())
            size += len(batch[-1].text)
        return batch

    async def _prepared(self) -> None:
        try:
            await self._maker.prepare()
        except StoreUnavailableError as error:
            self._last_error = str(error)

    def _task_of(self, flight: Flight, workflow_id: str, run_id: str) -> "asyncio.Task[None]":
        if flight.task is None:
            self._calls += 1
            flight.task = asyncio.create_task(self._fly(flight, workflow_id, run_id), name=flight.call_id)
            flight.task.add_done_callback(lambda _: self._landed(flight))
        return flight.task

    async def _fly(self, flight: Flight, workflow_id: str, run_id: str) -> None:
        if not flight.is_cancelled:
            result = await self._maker.make(flight, workflow_id, run_id, lambda: self._at_work(flight))
            if result is not None:
                self._end(flight, result)

    def _begin(self, flight: Flight) -> None:
        """It does not wait any more: its tool works on it, or it needs no turn."""
        self._begun, flight.has_begun = self._begun + (not flight.has_begun), True

    @asynccontextmanager
    async def _at_work(self, flight: Flight) -> AsyncGenerator[None]:
        """The tool works in the block. Its place is free, and the call moves, once that takes longer than the budget."""
        places = self._places[flight.call.tool_id]
        await places.acquire()
        self._begin(flight)

        def late() -> None:
            flight.is_late = True
            places.release()
            self._move_later(flight)

        timer = asyncio.get_running_loop().call_later(self._budget_s, late)
        try:
            yield
        finally:
            # Also one that is due: a call that is not moving when it ends has no claim to look for.
            timer.cancel()
            if not flight.is_late:
                places.release()

    def _landed(self, flight: Flight) -> None:
        """It was made; or has a workflow; or has to get one, whatever ended it."""
        self._begin(flight)
        if not flight.done.done() and (flight.is_moved or self._is_closed):
            self._end(flight, None)
        elif not flight.done.done():
            self._move_later(flight)

    def _move_later(self, flight: Flight) -> None:
        """Give the call a workflow of its own. The lane does not wait for that; the call does."""
        if flight.moving is None and not flight.done.done() and not self._is_closed:
            flight.moving = asyncio.create_task(self._move(flight), name=f"move {flight.call_id}")

    async def _move(self, flight: Flight) -> None:
        pause_s = _PAUSE_S
        while not await self._has_moved(flight):
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        if flight.task is None or flight.task.done():
            self._end(flight, None)

    async def _has_moved(self, flight: Flight) -> bool:
        """True also where it needs to no longer."""
        async with self._moves:
            if flight.done.done():
                return True
            try:
                await self._answered(self._move_to_workflow(flight))
            except Exception as error:  # noqa: BLE001 - whatever it is, the call waits for its workflow
                self._note(error)
                return False
            flight.is_moved = True
            self._moved += 1
            return True

    def _end(self, flight: Flight, result: ToolResult | None) -> None:
        if self._flights.get(flight.call_id) is flight:
            del self._flights[flight.call_id]
        if not flight.done.done():
            flight.done.set_result(result)


def _status(flight: Flight | None) -> LaneStatus:
    if flight is None:
        return "unknown"
    if flight.done.done() and (result := flight.done.result()) is not None:
        return result.status
    return "moved" if flight.done.done() or flight.is_moved else "running"
