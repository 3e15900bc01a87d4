"""Server-sent events of the older revision, and ids by which a client goes on after a break, whatever process it reaches."""

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
    """A place in what a request hears of its call: all messages up to `position` were told."""

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
        """None for what is no such id, or none that this service has sealed."""
        parts = states.opened_as("event", event_id) if len(event_id) <= _LONGEST_ID else None
        return cls(*parts) if parts is not None else None


@dataclass(frozen=True, slots=True)
class Event:
    """`message` is None for the one that only carries an id."""

    message: JsonObject | None
    event_id: str | None = None

    def written(self) -> bytes:
        data = json.dumps(self.message, ensure_ascii=False, separators=(",", ":")) if self.message is not None else ""
        head = f"id: {self.event_id}\n" if self.event_id else ""
        return (
            f"{head}retry: {_RETRY_MS}\ndata: \n\n".encode() if self.message is None else f"{head}event: message\ndata: {data}\n\n".encode()
        )


class EventStream:
    """An answer that is written event by event, from its first event on. A client that has gone misses nothing that it cannot ask for."""

    def __init__(self, receive: Receive, send: Send, headers: Mapping[str, str], *, ping_s: float = _PING_S) -> None:
        self._receive, self._send, self._ping_s = receive, send, ping_s
        self._headers = [*_HEADERS, *((name.lower().encode(), value.encode()) for name, value in headers.items())]
        self._turn = asyncio.Lock()
        self._written_at = time.monotonic()
        self.has_begun = self.is_gone = False

    async def write(self, event: Event) -> None:
        is_large = event.message is not None and "method" not in event.message
        async with self._turn:
            # A result may have megabytes; what is said before it is short.
            await self._put(await asyncio.to_thread(event.written) if is_large else event.written())

    async def follow(self, work: asyncio.Future[T], stopping: asyncio.Event) -> T | None:
        """The end of the work; None where the client goes before, or the service stops. The connection is kept alive meanwhile."""
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
