"""Heartbeats of activities that may take long."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from temporalio import activity

from activities.failures import expected
from engine.calling.turn import Interrupted, Told, Turn
from toolagent_service import step_names

_INTERVAL_S, _QUIET_S = 1.0, 0.5
"""Between heartbeats, and before the first: each is a request, and costs the server a quarter of a short call."""


@asynccontextmanager
async def beating(lost: int = 0, told: Sequence[Any] = ()) -> AsyncGenerator[Turn]:
    """Sends heartbeats until the block ends. Interrupted becomes a failure that Temporal may retry.

    `lost` attempts were made before, on other hosts; `told` is their last heartbeat.
    """
    info = activity.info()
    turn = _turn(info, lost, told)
    # Local activities have no heartbeats, and a task for nothing costs a short call one percent of its time.
    beats = None if info.is_local else asyncio.create_task(_beat(turn))
    try:
        yield turn
    except Interrupted:
        stopped = activity.cancellation_details()
        # A stopped worker or attempt is no fault of the call. A time-out, or a heartbeat that was not sent, may be.
        if stopped is not None and (stopped.worker_shutdown or stopped.paused or stopped.reset):
            turn.only_waited()
        raise expected("The attempt was ended from outside.", step_names.ATTEMPT_ENDED) from None
    finally:
        if beats is not None:
            beats.cancel()
            with suppress(asyncio.CancelledError):
                await beats


async def _beat(turn: Turn) -> None:
    await asyncio.sleep(_QUIET_S)
    while True:
        turn.beat()
        await asyncio.sleep(_INTERVAL_S)


def _turn(info: activity.Info, lost: int, told: Sequence[Any]) -> Turn:
    ids = (info.workflow_id or "", info.workflow_run_id or "")
    if info.is_local:
        return Turn(1, Told(), lambda _: None, _is_call_cancelled, *ids)
    count = len(Told._fields)  # heartbeats of an older worker have fewer fields
    # Temporal counts the attempts on this host. Attempts that only waited elsewhere do not count.
    earlier = Told(*info.heartbeat_details[:count]) if info.heartbeat_details else Told(*told[:count])._replace(waits=0)
    return Turn(lost + info.attempt, earlier, lambda told: activity.heartbeat(*told), _is_call_cancelled, *ids)


def _is_call_cancelled() -> bool:
    details = activity.cancellation_details()
    return details is not None and details.cancel_requested
