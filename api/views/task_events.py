"""Streams the events of a task.

A client can continue after any of them.
"""

import time
from collections.abc import AsyncGenerator

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.responses import Response

from api.errors import Refusal, bad_field
from api.ports import Dependencies
from api.views.event_streams import HEARTBEAT_S, LAST_EVENT_ID, RETRY_MS, EventStreams, position_of
from api.views.making import found_task
from toolagent.contracts.making_views import ListedTask
from toolagent.core.failures import StoreUnavailableError

_LOOK_S = 0.25


async def followed(dependencies: Dependencies, task_id: str, last: str | None, streams: EventStreams) -> Response:
    """Streams the events of a task until it ends or the service stops.

    Answers 204 if the task has ended and everything was sent before, so that browsers stop asking.

    Raises Refusal for an unknown task, an id of another stream, and if too many streams are open.
    """
    streams.require_room()
    position = position_of(last)
    task = await found_task(dependencies, task_id)
    await _require_own(dependencies, task_id, position)
    if last is not None and task.ended_at is not None and not await dependencies.notes.after(task_id, position, limit=1):
        return Response(status_code=204)
    return streams.response(_events(dependencies, task_id, position, streams))


async def _events(dependencies: Dependencies, task_id: str, position: int, streams: EventStreams) -> AsyncGenerator[bytes]:
    """`note` for each line of the log, `task` for each change of the task; the last `task` has ended."""
    before: ListedTask | None = None
    spoken = time.monotonic()
    yield format_sse_event(retry=RETRY_MS)
    while not streams.stopping.is_set():
        try:
            # In this order, because the last lines of the log are written together with the end of the task.
            task = await found_task(dependencies, task_id)
            notes = await dependencies.notes.after(task_id, position)
        except (StoreUnavailableError, Refusal):
            return  # the client asks again, with the id of the last event that arrived
        for note in notes:
            position = note.position
            yield format_sse_event(event="note", data_str=note.model_dump_json(), id=str(position))
        if not notes and task != before:
            before = task
            yield format_sse_event(event="task", data_str=task.model_dump_json())
        elif not notes:
            if time.monotonic() - spoken >= HEARTBEAT_S:
                spoken = time.monotonic()
                yield KEEPALIVE_COMMENT
            await streams.pause(_LOOK_S)
            continue
        spoken = time.monotonic()
        if not notes and task.has_ended:
            return


async def _require_own(dependencies: Dependencies, task_id: str, position: int) -> None:
    """Raises Refusal for a position that the task has not reached: the client would wait for ever."""
    if position == 0:
        return
    newest = next((note.position for note in await dependencies.notes.tail(task_id, 1)), 0)
    if position > newest:
        raise bad_field(
            LAST_EVENT_ID, f"Task {task_id!r} has no event {position}, its last is {newest}: leave the header out to begin with its first."
        )
