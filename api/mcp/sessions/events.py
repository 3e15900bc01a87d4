"""Server-sent events of the older revision, with ids by which a client can go on at any process."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from starlette.types import Receive, Send

from api.json_object import JsonObject
from api.mcp.calls.request_state import RequestStates

T = TypeVar("T")

_PING_S = 15.0
_RETRY_MS = 1000
_LONGEST_ID = 2048
_HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)


@dataclass(frozen=True, slots=True)
class CallPoint:
    """A position in the messages of a request's call: those up to `position` were told."""

    session_id: str
    call_id: str
    request_id: str | int
    token: str | int | None = None
    position: int = 0

    def at(self, position: int) -> "CallPoint":
        return replace(self, position=position)

    def event_id(self, states: RequestStates) -> str:
        return states.sealed_as("event", self.session_id, self.call_id, self.request_id, self.token, self.position)

    @classmethod
    def of(cls, event_id: str, states: RequestStates) -> "CallPoint | None":
        """None for an id of another kind, or that this service has not sealed."""
        parts = states.opened_as("event", event_id) if len(event_id) <= _LONGEST_ID else None
        return cls(*parts) if parts is not None else None


@dataclass(frozen=True, slots=True)
class Event:
    """`message` is None for an event that only has an id."""

    message: JsonObject | None
    event_id: str | None = None

    def written(self) -> bytes:
        head = f"id: {self.event_id}\n" if self.event_id else ""
        if self.message is None:
            return f"{head}retry: {_RETRY_MS}\ndata: \n\n".encode()
        data = json.dumps(self.message, ensure_ascii=False, separators=(",", ":"))
        return f"{head}event: message\ndata: {data}\n\n".encode()


class EventStream:
    """An answer written event by event. A client that has gone can ask for the rest."""

    def __init__(self, receive: Receive, send: Send, headers: Mapping[str, str], *, ping_s: float = _PING_S) -> None:
        self._receive, self._send, self._ping_s = receive, send, ping_s
        self._headers = [*_HEADERS, *((name.lower().encode(), value.encode()) for name, value in headers.items())]
        self._turn = asyncio.Lock()
        self._written_at = time.monotonic()
        self.has_begun = self.is_gone = False

    async def write(self, event: Event) -> None:
        is_large = event.message is not None and "method" not in event.message
        async with self._turn:
            # Only a result may have megabytes.
            await self._put(await asyncio.to_thread(event.written) if is_large else event.written())

    async def follow(self, work: asyncio.Future[T], stopping: asyncio.Event) -> T | None:
        """The result of the work; None if the client goes or the service stops before. Keeps the connection alive."""
        gone, stopped = asyncio.ensure_future(self._watched()), asyncio.ensure_future(stopping.wait())
        try:
            while not work.done() and not gone.done() and not stopped.done():
                await asyncio.wait((work, gone, stopped), timeout=self._ping_s, return_when=asyncio.FIRST_COMPLETED)
                if time.monotonic() - self._written_at >= self._ping_s:
                    await self._ping()
        finally:
            gone.cancel()
            stopped.cancel()
        if work.done():
            return work.result()
        self.is_gone = True
        return None

    async def end(self) -> None:
        async with self._turn:
            if self.has_begun:
                await self._send({"type": "http.response.body", "body": b"", "more_body": False})
            self.is_gone = True

    async def _ping(self) -> None:
        async with self._turn:
            await self._put(b": ping\n\n")

    async def _put(self, data: bytes) -> None:
        if not self.is_gone:
            self._written_at = time.monotonic()
            if not self.has_begun:
                self.has_begun = True
                await self._send({"type": "http.response.start", "status": 200, "headers": self._headers})
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def _watched(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
