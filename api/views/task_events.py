"""What happens in a task, as it happens: server-sent events that can be gone on with after any of them."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Header
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from starlette.responses import Response

from api.errors import Refusal, bad_field
from api.ports import Dependencies
from api.views.making import found_task
from toolagent.contracts.making_views import ListedTask
from toolagent.core.failures import StoreUnavailableError

LAST_EVENT_ID = "Last-Event-ID"
LastEventId = Annotated[
    str | None, Header(alias=LAST_EVENT_ID, description="The `id` of the last event that arrived; only what followed is sent.")
]

_LOOK_S = 0.25
_HEARTBEAT_S = 5.0
RETRY_MS = 1_000
_MOST_DIGITS = 9
EVENT_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


async def followed(dependencies: Dependencies, task_id: str, last: str | None, stopping: asyncio.Event) -> Response:
    """A stream that ends when the task has, or the service stops.

    204 when the task has ended and everything was sent before, so that browsers stop asking.

    Raises Refusal for a task that nobody knows, or an id that is none of this stream.
    """
    position = position_of(last)
    task = await found_task(dependencies, task_id)
    await _require_own(dependencies, task_id, position)
    if last is not None and task.ended_at is not None and not await dependencies.notes.after(task_id, position, limit=1):
        return Response(status_code=204)
    return EventSourceResponse(_events(dependencies, task_id, position, stopping), headers=EVENT_HEADERS)


async def _events(dependencies: Dependencies, task_id: str, position: int, stopping: asyncio.Event) -> AsyncIterator[bytes]:
    """`note` for each line of the log, `task` whenever the task is another than before; the last one has ended."""
    before: ListedTask | None = None
    spoken = time.monotonic()
    yield format_sse_event(retry=RETRY_MS)
    while not stopping.is_set():
        try:
            # In this order: the last lines of a log are written together with the end.
            task = await found_task(dependencies, task_id)
            notes = await dependencies.notes.after(task_id, position)
        except (StoreUnavailableError, Refusal):
            return  # whoever follows asks again, with the id of the last event that arrived
        for note in notes:
            position = note.position
            yield format_sse_event(event="note", data_str=note.model_dump_json(), id=str(position))
        if not notes and task != before:
            before = task
            yield format_sse_event(event="task", data_str=task.model_dump_json())
        elif not notes:
            if time.monotonic() - spoken >= _HEARTBEAT_S:
                spoken = time.monotonic()
                yield KEEPALIVE_COMMENT
            await _pause(stopping)
            continue
        spoken = time.monotonic()
        if not notes and task.has_ended:
            return


async def _pause(stopping: asyncio.Event) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stopping.wait(), _LOOK_S)


async def _require_own(dependencies: Dependencies, task_id: str, position: int) -> None:
    """Raises Refusal for a position that nothing of this task has had: whoever waited after it would wait for ever."""
    if position == 0:
        return
    newest = next((note.position for note in await dependencies.notes.tail(task_id, 1)), 0)
    if position > newest:
        raise bad_field(
            LAST_EVENT_ID, f"Task {task_id!r} has no event {position}, its last is {newest}: leave the header out to begin with its first."
        )


def position_of(last: str | None) -> int:
    """The position that a header names; 0 without one. Raises Refusal."""
    if last is None or last == "":
        return 0
    if not (last.isascii() and last.isdigit() and len(last) <= _MOST_DIGITS):
        raise bad_field(LAST_EVENT_ID, "It must be the id of an event of this stream: a number, as it was sent.")
    return int(last)
