"""Whether calls can be recorded: looked at all the time, so that one which cannot be is refused at once instead of hanging."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import structlog

from api.views.readiness import Remembered
from toolagent.core.failures import StoreUnwritableError

_LOOK_S = 0.5
_ROOM_KNOWN_S = 0.05
"""How long a look that found room counts. Hundreds of calls a second would each make one."""

_CALM_S = 5.0
"""How often everything is written to while all is well."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class UnrecordableError(Exception):
    """Calls cannot be recorded now. `was_sent`: what was asked may have been taken before that was known."""

    def __init__(self, cause: str, told: str, *, was_sent: bool) -> None:
        super().__init__(told)
        self.cause, self.was_sent = cause, was_sent


class Recording:
    """`checks` write where calls are recorded; what they found for /health counts too. `require_room` looks at the disks of these.

    They raise StoreUnwritableError. What is away for a moment is waited for, as ever.
    """

    def __init__(self, checks: Sequence[Remembered], require_room: Callable[[], None]) -> None:
        self._checks, self._require_room = checks, require_room
        self._said = ""
        self._no_room: StoreUnwritableError | None = None
        self._looked_at = float("-inf")
        self._bounds: set[asyncio.Timeout] = set()

    def require(self) -> None:
        """Raises UnrecordableError. While there is room, its disks are looked at twenty times a second at most."""
        if (failure := self._now()) is not None:
            raise UnrecordableError(failure.cause, failure.told, was_sent=False)

    @asynccontextmanager
    async def recorded(self, *, looks: bool = False) -> AsyncGenerator[None]:
        """For what has an answer soon. Raises UnrecordableError, also when it turns out while the block waits.

        What only `looks` is tried all the same, for a moment: it may need no writing.
        """
        if not looks:
            self.require()
        bound = asyncio.timeout(None)
        try:
            async with bound:
                self._bounds.add(bound)
                try:
                    yield
                finally:
                    self._bounds.discard(bound)
        except TimeoutError:
            if not bound.expired():
                raise
            failure = self._now() or StoreUnwritableError("unknown", "For a moment calls could not be recorded.", "")
            raise UnrecordableError(failure.cause, failure.told, was_sent=True) from None

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[None]:
        """Look until the block ends."""
        task = asyncio.create_task(self._watch(), name="watch recording")
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _watch(self) -> None:
        written = time.monotonic()
        while True:
            await asyncio.sleep(_LOOK_S)
            if self._now() is not None or time.monotonic() - written > _CALM_S:
                await asyncio.gather(*(check() for check in self._checks), return_exceptions=True)
                written = time.monotonic()
            self._say(failure := self._now())
            if failure is not None:
                for bound in [*self._bounds]:
                    bound.reschedule(asyncio.get_running_loop().time())

    def _say(self, failure: StoreUnwritableError | None) -> None:
        told = failure.told if failure else ""
        if told != self._said:
            if failure is not None:
                _log.error("calls_cannot_be_recorded", cause=failure.cause, reason=told)
            else:
                _log.info("calls_can_be_recorded_again")
        self._said = told

    def _now(self) -> StoreUnwritableError | None:
        if self._no_room is not None or time.monotonic() - self._looked_at >= _ROOM_KNOWN_S:
            self._no_room, self._looked_at = self._look_at_room(), time.monotonic()
        if self._no_room is not None:
            return self._no_room
        return next((check.outcome for check in self._checks if isinstance(check.outcome, StoreUnwritableError)), None)

    def _look_at_room(self) -> StoreUnwritableError | None:
        try:
            self._require_room()
        except StoreUnwritableError as error:
            return error
        return None
