"""Streams of server-sent events, and the limit for open ones."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import Header
from fastapi.sse import EventSourceResponse
from starlette.responses import Response

from api.errors import Refusal, bad_field
from toolagent.contracts.calls import ErrorType

LAST_EVENT_ID = "Last-Event-ID"
LastEventId = Annotated[
    str | None, Header(alias=LAST_EVENT_ID, description="The `id` of the last event that arrived; only what followed is sent.")
]
RETRY_MS = 1_000
HEARTBEAT_S = 5.0
MOST_OPEN = 1_024
"""The limit for one process, because each stream asks the database again and again. MCP clients have their own limit, of the same size."""

_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
_RETRY = {"Retry-After": "5"}
_MOST_DIGITS = 9


class EventStreams:
    """The streams of one front door. They end when `stopping` is set; clients then connect again."""

    def __init__(self, stopping: asyncio.Event, most: int = MOST_OPEN) -> None:
        self.stopping, self._most, self._open = stopping, most, 0

    def require_room(self) -> None:
        """Raises Refusal (503) if the most streams are open."""
        if self._open >= self._most:
            told = f"{self._most:,} event streams are open at this front door. Try again later, or ask without a stream."
            raise Refusal(ErrorType.UNAVAILABLE, told, headers=_RETRY)

    def response(self, events: AsyncGenerator[bytes]) -> Response:
        return EventSourceResponse(self._counted(events), headers=_HEADERS)

    async def pause(self, seconds: float) -> None:
        """Sleep; ends early if the service stops."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), seconds)

    async def _counted(self, events: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        self._open += 1
        try:
            async with contextlib.aclosing(events):
                async for event in events:
                    yield event
        finally:
            self._open -= 1


def position_of(last: str | None) -> int:
    """The position in `Last-Event-ID`; 0 without it. Raises Refusal."""
    if not last:
        return 0
    if not (last.isascii() and last.isdigit() and len(last) <= _MOST_DIGITS):
        raise bad_field(LAST_EVENT_ID, "It must be the id of an event of this stream: a number, as it was sent.")
    return int(last)
