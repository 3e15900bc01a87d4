"""How long a process that stops leaves what it has in hand: one clock for all of it."""

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from toolagent_service import step_names

_LAST_S = 1.0
"""Of the grace: what has not ended before is ended by the workers, which takes its own time."""


_SETTLE_S = 0.5
"""Until the end of a call has come back from Temporal and is written down."""


class Grace(Interceptor):
    """Counts the activities of the workers it is given to, and how long they may go on once the process stops.

    The clock starts when it is first asked. Until it is over the workers work on: a call that ends is settled, and answered, here.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until: float | None = None
        self._in_hand, self._takes_calls = 0, True
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def left_s(self) -> float:
        if self._until is None:
            self._until = time.monotonic() + self.seconds
        return max(0.0, self._until - time.monotonic())

    @property
    def takes_calls(self) -> bool:
        return self._takes_calls

    @contextmanager
    def held(self) -> Generator[None]:
        """One more in hand."""
        self._in_hand += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._in_hand -= 1
            if not self._in_hand:
                self._idle.set()

    async def idle(self) -> None:
        """Take no call any more; return when nothing is in hand and what has ended is settled, or the grace is about to be over."""
        self._takes_calls = False
        if not self._in_hand:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self.left_s - _LAST_S):
                await self._idle.wait()
                await asyncio.sleep(_SETTLE_S)

    def require_time(self, activity_type: str) -> None:
        """Raises ApplicationError for a call that comes when nobody would wait for its end: begun now, it would be cut off."""
        if not self._takes_calls and activity_type == step_names.CALL:
            raise ApplicationError("The host stops.", type=step_names.ATTEMPT_ENDED, category=ApplicationErrorCategory.BENIGN)

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Counted(next, self)


class _Counted(ActivityInboundInterceptor):
    def __init__(self, further: ActivityInboundInterceptor, grace: Grace) -> None:
        super().__init__(further)
        self._grace = grace

    async def execute_activity(self, input: ExecuteActivityInput) -> object:
        self._grace.require_time(activity.info().activity_type)
        with self._grace.held():
            return await super().execute_activity(input)
