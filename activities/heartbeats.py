"""Telling Temporal, while something takes long, that we are alive and what we are doing."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from temporalio import activity

from toolagent.core.texts import well_formed

_INTERVAL_S = 1.0

_QUIET_S = 0.5
"""What ends before this says nothing: each heartbeat is a request of its own, a quarter of what a short call costs the server."""


class Pulse:
    """What each heartbeat says: the progress that people see, and what the next attempt reads.

    That is how often the tool was asked, how many seconds it has had (`spent_s`), and how many attempts ended in good order without
    having tried anything (`waits`). Without heartbeats a call is tried less often, never without end: Temporal counts the attempts.
    """

    def __init__(self) -> None:
        info = activity.info()
        self.workflow_id, self.run_id = info.workflow_id or "", info.workflow_run_id or ""
        self._is_local = info.is_local
        earlier = info.heartbeat_details
        self._is_heard = False
        self._progress = ""
        # Those of an older worker told less.
        self._sends: int = earlier[1] if len(earlier) > 1 else 0
        self.earlier_s: float = earlier[2] if len(earlier) > 2 else 0.0
        self._waits: int = earlier[3] if len(earlier) > 3 else 0
        self._sent_at: float | None = None
        self._attempt = info.attempt

    @property
    def tries(self) -> int:
        """How many attempts before this one were lost, or failed for a reason of ours."""
        return 0 if self._is_local else self._attempt - 1 - self._waits

    @property
    def is_call_cancelled(self) -> bool:
        """Whether somebody cancelled the call. A worker that stops, a pause, a reset or a time-out end this attempt, not the call."""
        details = activity.cancellation_details()
        return details is not None and details.cancel_requested

    def say(self, progress: str) -> None:
        """What is being done now, in a few words."""
        self._progress = well_formed(progress)
        self._tell()

    def sending(self) -> None:
        """The tool is asked, once more."""
        self._sends += 1
        self._sent_at = time.monotonic()
        self._tell()

    def not_sent(self) -> None:
        """It was not reached after all."""
        self._sent_at = None

    def only_waited(self) -> None:
        """This attempt ends in good order, and is none that was tried."""
        self._waits += 1
        self.beat()

    def interrupted(self) -> None:
        """Somebody stopped the worker or the attempt: no fault of the call. A time-out, or a heartbeat that could not be sent, may be."""
        details = activity.cancellation_details()
        if details is not None and (details.worker_shutdown or details.paused or details.reset):
            self.only_waited()

    def beat(self) -> None:
        """From now on everything is told at once."""
        self._is_heard = True
        self._tell()

    def _tell(self) -> None:
        if self._is_heard and not self._is_local:  # local activities have no heartbeats
            spent_s = self.earlier_s + (time.monotonic() - self._sent_at if self._sent_at is not None else 0.0)
            activity.heartbeat(self._progress, self._sends, spent_s, self._waits)


@asynccontextmanager
async def beating() -> AsyncGenerator[Pulse]:
    """Heartbeats until the block ends."""
    pulse = Pulse()

    async def beat() -> None:
        await asyncio.sleep(_QUIET_S)
        while True:
            pulse.beat()
            await asyncio.sleep(_INTERVAL_S)

    task = asyncio.create_task(beat())
    try:
        yield pulse
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
