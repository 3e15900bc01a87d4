"""The lane of a front door: sends calls to Temporal in batches, and makes them in this process, each as an asyncio task.

A call is in flight from `take` until its result is recorded, or its own workflow has it. There is one flight for each call id.
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
"""How long a batch waits for its calls, and how long a call runs before it gets its own workflow."""

MOST_CALLS = 64
_MOST_BYTES = 256 * 1024
_MOST_WAITING = 2048
_AT_ONCE = 8
"""Concurrent calls of one tool. More would wait inside the tool, and look slow."""

_MOVES_AT_ONCE = 2
"""Concurrent moves. A call that ends while it waits to move needs no workflow, so a busy lane starts few."""

_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0
_LATELY_S = 10.0
_MOST_REFUSALS = 3
"""Refusals of a batch before its calls are sent one by one."""


class LaneFullError(Exception):
    """Too many calls wait, so this one was not taken."""


@dataclass(eq=False, slots=True)
class Flight:
    """A call in flight. Its `claim` is in the database once it `is_accepted`.

    `text` is its JSON, for readers of its batch. `done` gets the result; None: its own workflow has the call.
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
    """The answer of the tool is being recorded, and can no longer be cancelled."""
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
        """Whether its task runs."""
        return self.task is not None and not self.task.done()

    def cancel(self) -> None:
        """Cancels the call. Its result, or its workflow, tells how far it was."""
        if self.task is not None and not self.is_cancelled and not self.is_settling:
            self.task.cancel()
        self.is_cancelled = True


Work = Callable[[], AbstractAsyncContextManager[None]]
"""A block in which the tool is asked once."""


class LaneMaker(Protocol):
    async def prepare(self) -> None:
        """Runs before the calls of a batch."""
        ...

    async def make(self, flight: Flight, workflow_id: str, run_id: str, work: Work) -> ToolResult | None:
        """The recorded result. None, or CancelledError: the call needs its own workflow."""
        ...


Send = Callable[[LaneBatch], Awaitable[bool]]
"""Sends a batch and waits for it. Returns whether its run is about to end. Raises LaneUnreachableError, BatchRefusedError."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Move = Callable[[Flight], Awaitable[None]]
"""Starts the workflow of a call. Idempotent. Raises LaneUnreachableError, StoreUnavailableError."""


class Lane:
    """The front door calls `take`, the activity calls `perform`. Call `close` at the end."""

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
        """Seconds since Temporal was asked without an answer."""
        return time.monotonic() - self._asked_at if self._asked_at is not None else 0.0

    def flight(self, call_id: str) -> Flight | None:
        return self._flights.get(call_id)

    def hand_on(self, flight: Flight) -> None:
        """Gives an accepted call a workflow, unless it is in flight here. Requests for it wait for that."""
        if self._flights.setdefault(flight.call_id, flight) is flight:
            self._move_later(flight)

    @property
    def gone_on(self) -> tuple[Flight, ...]:
        """Calls that run here and have their own workflow."""
        return tuple(flight for flight in self._flights.values() if flight.is_moved)

    @property
    def delayed(self) -> tuple[Flight, ...]:
        """Accepted calls that have been here for longer than the budget without a workflow."""
        before = time.monotonic() - self._budget_s
        return tuple(flight for flight in self._flights.values() if flight.is_accepted and not flight.is_moved and flight.came_at < before)

    @contextmanager
    def room(self) -> Generator[None]:
        """Keeps a place for a call that is taken in the block. Raises LaneFullError."""
        if self._not_begun + self._expected >= self._most_waiting:
            raise LaneFullError(f"{self._not_begun} calls are waiting already.")
        self._expected += 1
        try:
            yield
        finally:
            self._expected -= 1

    def take(self, flight: Flight) -> Flight:
        """The flight of this call id: this one, or an earlier one."""
        known = self._flights.setdefault(flight.call_id, flight)
        if known is flight:
            self._waiting.append(flight)
            self._look_if_due()
            if self._sender is None or self._sender.done():
                self._asked_at = None
                self._sender = asyncio.create_task(self._send_all(), name="lane")
        return known

    def leave(self, flight: Flight) -> bool:
        """Takes back a call that has not begun; False: it is too late. A batch with it then skips it."""
        if flight.task is not None or flight.moving is not None:
            return False
        if flight in self._waiting:
            self._waiting.remove(flight)
        self._end(flight, None)
        return True

    async def perform(self, asked: Sequence[LaneCall], workflow_id: str, run_id: str) -> tuple[LaneEnd, ...]:
        """Makes the calls of a batch, within the budget. Idempotent: repeated, it makes nothing twice."""
        if any(call.call_id in self._flights for call in asked):
            await asyncio.shield(self._preparing or self._prepared())
        # Only now: the caller of a call that was taken back meanwhile was told that it is not made.
        flights = [flight for call in asked if (flight := self._flights.get(call.call_id)) is not None]
        # A moving call has a workflow, or gets one. A refused batch may come nevertheless.
        tasks = [self._task_of(flight, workflow_id, run_id) for flight in flights if flight.task is not None or flight.moving is None]
        if tasks:
            self._lately.append((time.monotonic(), len(tasks)))
            await asyncio.wait(tasks, timeout=self._budget_s)
        self._is_made = self._is_made or all(flight.is_past for flight in self._batch)  # an earlier batch may come again
        self._look_if_due()
        known = {flight.call_id: flight for flight in flights}
        return tuple(LaneEnd(call_id=call.call_id, status=_status(known.get(call.call_id))) for call in asked)

    async def close(self) -> None:
        """Ends all flights: calls that have not begun get no result, and running ones are cancelled."""
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
            # Prepare after all calls have come, while Temporal is asked.
            self._preparing = asyncio.create_task(self._prepared(), name="prepare a batch")
            try:
                await self._told(batch)
                pause_s, refusals = _PAUSE_S, refusals if singly else 0
            except Exception as error:  # noqa: BLE001 - the calls of the batch wait for another attempt
                self._note(error)
                refusals += isinstance(error, BatchRefusedError) or not isinstance(error, LaneUnreachableError | StoreUnavailableError)
                left = [flight for flight in batch if not flight.is_past]
                if refusals >= _MOST_REFUSALS and len(batch) == 1:
                    for flight in left:
                        self._move_later(flight)
                    continue
                self._waiting.extendleft(reversed(left))
                if refusals >= _MOST_REFUSALS:
                    # One call may be the reason: sent alone, it gets a workflow and does not block the others.
                    singly = len(left)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _told(self, batch: Sequence[Flight]) -> None:
        """Returns when Temporal is done with the batch; or earlier, when its calls are made and as many wait, unless the run is ending."""
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
        """Notes the failure of a batch whose calls were made, so that nothing else is lost."""
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
        """The call no longer waits: its tool works, or it needs no turn."""
        self._begun, flight.has_begun = self._begun + (not flight.has_begun), True

    @asynccontextmanager
    async def _at_work(self, flight: Flight) -> AsyncGenerator[None]:
        """The tool works in the block. After the budget its place becomes free, and the call moves to a workflow."""
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
            # Even if it is due: a call that is not moving at its end has no claim to look for.
            timer.cancel()
            if not flight.is_late:
                places.release()

    def _landed(self, flight: Flight) -> None:
        """The task has ended: the call has a result or a workflow, or gets one."""
        self._begin(flight)
        if not flight.done.done() and (flight.is_moved or self._is_closed):
            self._end(flight, None)
        elif not flight.done.done():
            self._move_later(flight)

    def _move_later(self, flight: Flight) -> None:
        """Gives the call its own workflow, in the background."""
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
        """True also if the call needs no move any more."""
        async with self._moves:
            if flight.done.done():
                return True
            try:
                await self._answered(self._move_to_workflow(flight))
            except Exception as error:  # noqa: BLE001 - the call waits for its workflow
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
