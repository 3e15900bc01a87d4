"""Telling Temporal, while something takes long, that we are alive and what we are doing."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from engine.calling.turn import Told, Turn
from toolagent_service import step_names

_INTERVAL_S = 1.0

_QUIET_S = 0.5
"""What ends before this says nothing: each heartbeat is a request of its own, a quarter of what a short call costs the server."""


@asynccontextmanager
async def beating(lost: int = 0, told: Sequence[Any] = ()) -> AsyncGenerator[Turn]:
    """Heartbeats until the block ends. `lost` attempts were made before on other hosts; `told` is the last heartbeat of these."""
    turn = _turn(activity.info(), lost, told)

    async def beat() -> None:
        await asyncio.sleep(_QUIET_S)
        while True:
            turn.beat()
            await asyncio.sleep(_INTERVAL_S)

    task = asyncio.create_task(beat())
    try:
        yield turn
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _turn(info: activity.Info, lost: int, told: Sequence[Any]) -> Turn:
    ids = (info.workflow_id or "", info.workflow_run_id or "")
    if info.is_local:  # it has no heartbeats
        return Turn(1, Told(), lambda _: None, _is_call_cancelled, *ids)
    count = len(Told._fields)  # those of an older worker told less
    # Temporal counts the attempts on this host: those that only waited elsewhere are not among them.
    earlier = Told(*info.heartbeat_details[:count]) if info.heartbeat_details else Told(*told[:count])._replace(waits=0)
    return Turn(lost + info.attempt, earlier, lambda told: activity.heartbeat(*told), _is_call_cancelled, *ids)


def attempt_key() -> str:
    """Identifies this attempt among all attempts at all steps."""
    info = activity.info()
    return f"{info.workflow_run_id}:{info.activity_id}:{info.attempt}"


def is_stopped() -> bool:
    """Whether somebody stopped the worker or the attempt: no fault of the call. A time-out, or a heartbeat that was not sent, may be."""
    details = activity.cancellation_details()
    return details is not None and (details.worker_shutdown or details.paused or details.reset)


def _is_call_cancelled() -> bool:
    details = activity.cancellation_details()
    return details is not None and details.cancel_requested


def ended_from_outside() -> ApplicationError:
    """Another attempt follows."""
    return ApplicationError("The attempt was ended from outside.", type=step_names.ATTEMPT_ENDED, category=ApplicationErrorCategory.BENIGN)
