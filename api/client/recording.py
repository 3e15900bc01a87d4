"""Watches whether calls can be recorded, so that a call is refused at once instead of hanging."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import structlog

from api.views.readiness import Remembered
from engine.beside import beside
from toolagent.core.failures import StoreUnwritableError

_LOOK_S = 0.5
_ROOM_KNOWN_S = 0.05
"""How long room found on the disks is taken for granted: hundreds of calls a second would each look."""

_CALM_S = 5.0
"""Pause between two checks while all is well."""

_log = structlog.stdlib.get_logger(__name__)


class UnrecordableError(Exception):
    """Calls cannot be recorded now. `was_sent`: the request may have been accepted before that was known."""

    def __init__(self, cause: str, told: str, *, was_sent: bool) -> None:
        super().__init__(told)
        self.cause, self.was_sent = cause, was_sent


class Recording:
    """`checks` write to the places where calls are recorded; their outcomes for /health count too. `require_room` checks the disks there.

    Both raise StoreUnwritableError. A database or server that is away for a moment is waited for, as always.
    """

    def __init__(self, checks: Sequence[Remembered], require_room: Callable[[], None]) -> None:
        self._checks, self._require_room = checks, require_room
        self._said = ""
        self._no_room: StoreUnwritableError | None = None
        self._looked_at = float("-inf")
        self._bounds: set[asyncio.Timeout] = set()

    def require(self) -> None:
        """Raises UnrecordableError. While there is room, looks at the disks at most twenty times a second."""
        if (failure := self._now()) is not None:
            raise UnrecordableError(failure.cause, failure.told, was_sent=False)

    @asynccontextmanager
    async def recorded(self, *, looks: bool = False) -> AsyncGenerator[None]:
        """For requests with a quick answer. Raises UnrecordableError, also if recording fails while the block waits.

        A request that only `looks` is tried for a moment: it may need no writing.
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
        async with beside("watch recording", self._watch()):
            yield

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
