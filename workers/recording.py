"""Whether calls can be recorded: looked at all the time, so that one which cannot be is refused at once instead of hanging."""

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import structlog

from api.ports import UnwritableError
from api.views.readiness import Remembered
from toolagent.core.failures import StoreUnwritableError

__all__ = ["Recording", "UnrecordableError", "require_room", "require_writing"]

_LOOK_S = 0.5
_CALM_S = 5.0
"""How often everything is written to while all is well."""

_ROOM = 1 << 20
"""Bytes. Where less is left, one call may still fit and the next one not."""

_PIECE = bytes(1 << 16)

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class UnrecordableError(Exception):
    """Calls cannot be recorded now. `was_sent`: what was asked may have been taken before that was known."""

    def __init__(self, cause: str, told: str, *, was_sent: bool) -> None:
        super().__init__(told)
        self.cause, self.was_sent = cause, was_sent


class Recording:
    """`checks` write where calls are recorded, `folders` are on the disks of these. What a check found for /health counts too."""

    def __init__(self, checks: Sequence[Remembered], folders: Mapping[str, Path]) -> None:
        self._checks, self._folders = checks, folders
        self._said: tuple[str, str] | None = None
        self._bounds: set[asyncio.Timeout] = set()

    def require(self) -> None:
        """Raises UnrecordableError. Costs a look at the free room of the disks."""
        if (failure := self._now()) is not None:
            raise UnrecordableError(*failure, was_sent=False)

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
            cause, told = self._now() or ("unknown", "For a moment calls could not be recorded.")
            raise UnrecordableError(cause, told, was_sent=True) from None

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

    def _failure(self) -> tuple[str, str] | None:
        for check in self._checks:
            match outcome := check.outcome:
                case UnwritableError():
                    return outcome.cause, str(outcome)
                case StoreUnwritableError():
                    return outcome.cause, outcome.told
                case _:
                    # What is away for a moment is waited for, as ever.
                    continue
        return None

    def _say(self, failure: tuple[str, str] | None) -> None:
        if failure != self._said:
            if failure is not None:
                _log.error("calls_cannot_be_recorded", cause=failure[0], reason=failure[1])
            else:
                _log.info("calls_can_be_recorded_again")
        self._said = failure

    def _now(self) -> tuple[str, str] | None:
        if full := _full(self._folders):
            return "disk_full", f"{full}: the disk is full."
        return self._failure()


def require_room(folders: Mapping[str, Path]) -> None:
    """Raises UnwritableError naming the first whose disk has no room. Does not block: no disk is read."""
    if full := _full(folders):
        raise UnwritableError("disk_full", f"{full}: the disk is full.")


async def require_writing(folders: Mapping[str, Path]) -> None:
    """Write a little to each folder. Raises UnwritableError naming the first that cannot be written."""
    require_room(folders)
    for name, folder in folders.items():
        with _named_failures(name):
            await asyncio.to_thread(_write, folder)


def _full(folders: Mapping[str, Path]) -> str:
    for name, folder in folders.items():
        with suppress(OSError):  # a folder that is gone is found when it is written to
            status = os.statvfs(folder)
            free = status.f_bfree if os.geteuid() == 0 else status.f_bavail
            if free * status.f_frsize < _ROOM:
                return name
    return ""


@contextmanager
def _named_failures(name: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise UnwritableError("cannot_write", f"{name} cannot be written: {error.strerror}.") from error


def _write(folder: Path) -> None:
    """Without a name, so that nothing is left of it."""
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=".writable-")
    try:
        Path(name).unlink()
        rest = memoryview(_PIECE)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
