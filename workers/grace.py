"""The time that a stopping process gives its calls and steps: one clock for all of them."""

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from toolagent_service import step_names

_LAST_S = 1.0
"""The end of the grace, in which workers cancel what has not ended."""

_SETTLE_S = 0.5
"""Time until the end of a call has come back from Temporal and is recorded."""


class Grace(Interceptor):
    """Counts running activities, and bounds how long they may go on when the process stops.

    The clock starts with the first question for the time left. Until then workers go on: a call that ends is settled and answered here.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until: float | None = None
        self._in_hand, self.takes_calls = 0, True
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def left_s(self) -> float:
        if self._until is None:
            self._until = time.monotonic() + self.seconds
        return max(0.0, self._until - time.monotonic())

    @contextmanager
    def held(self) -> Generator[None]:
        """Count an activity that runs in the block."""
        self._in_hand += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._in_hand -= 1
            if not self._in_hand:
                self._idle.set()

    async def idle(self) -> None:
        """Take no more calls. Returns when no activity runs and ended calls are settled, or the grace is almost over."""
        self.takes_calls = False
        if not self._in_hand:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self.left_s - _LAST_S):
                await self._idle.wait()
                await asyncio.sleep(_SETTLE_S)

    def require_time(self, activity_type: str) -> None:
        """Raises ApplicationError for a call that comes while the process stops: it would be cut off."""
        if not self.takes_calls and activity_type == step_names.CALL:
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
