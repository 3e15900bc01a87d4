"""A client of MCP that reads streams message by message, from a real server."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from api.ports import Dependencies
from tests.api.conftest import House
from tests.api.mcp_client import Caller
from tests.api.serving import reached

_LONGEST_S = 60.0


class Stream:
    """An answer message by message; the server starts it with the first message.

    `last_event_id` is that of the newest event that has one.
    """

    def __init__(self, sending: "asyncio.Task[httpx.Response]", request_id: int | None) -> None:
        self._sending, self.request_id = sending, request_id
        self.last_event_id = ""
        self._lines = self._read()

    async def next(self) -> dict[str, Any]:
        """The next message. Raises TimeoutError, StopAsyncIteration."""
        async with asyncio.timeout(_LONGEST_S):
            while True:
                line = await anext(self._lines)
                self._note(line)
                if line.startswith("data: {"):
                    message: dict[str, Any] = json.loads(line.removeprefix("data: "))
                    del message["jsonrpc"]
                    return message

    async def primed(self) -> None:
        """Read until the first event, which has an id."""
        async with asyncio.timeout(_LONGEST_S):
            while not self.last_event_id:
                self._note(await anext(self._lines))

    async def ended(self) -> bool:
        async with asyncio.timeout(_LONGEST_S):
            return not [line async for line in self._lines if line.startswith("data: {")]

    async def leave(self) -> None:
        """Close the connection."""
        if self._sending.done() and not self._sending.cancelled() and not self._sending.exception():
            await self._sending.result().aclose()
        self._sending.cancel()

    async def _read(self) -> AsyncIterator[str]:
        async for line in (await self._sending).aiter_lines():
            yield line

    def _note(self, line: str) -> None:
        if line.startswith("id: "):
            self.last_event_id = line.removeprefix("id: ")


class Client:
    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self._streams: list[Stream] = []

    @property
    def session_id(self) -> str | None:
        return self.caller.session_id

    async def post(self, message: object) -> httpx.Response:
        return await self.caller.post(message)

    async def stream(self, method: str, **params: Any) -> Stream:
        """The answer to a request, from its first event."""
        message, headers = self.caller.request(method, **params)
        request = self.caller.http.build_request("POST", self.caller.path, json=message, headers={**self.caller.headers, **headers})
        return await self._sent(request, message["id"])

    async def resume(self, last_event_id: str | None) -> Stream:
        """GET: the events after one, or new ones."""
        headers = {**self.caller.headers, **({"Last-Event-ID": last_event_id} if last_event_id else {})}
        return await self._sent(self.caller.http.build_request("GET", self.caller.path, headers=headers))

    async def calls(self, house: House, count: int) -> list[str]:
        """The ids of the calls, as soon as there are this many."""
        async with asyncio.timeout(_LONGEST_S):
            while len(house.client.calls) < count:  # noqa: ASYNC110 - the fake client tells nobody
                await asyncio.sleep(0)
        return list(house.client.calls)

    async def close(self) -> None:
        for stream in self._streams:
            await stream.leave()

    async def _sent(self, request: httpx.Request, request_id: int | None = None) -> Stream:
        sending = asyncio.create_task(self.caller.http.send(request, stream=True))
        self._streams.append(stream := Stream(sending, request_id))
        return stream


@asynccontextmanager
async def opened(
    dependencies: Dependencies, revision: str, capabilities: Mapping[str, Any] | None = None, session_id: str | None = None
) -> AsyncGenerator[Client]:
    """A caller of one revision, with a session if the revision has sessions."""
    async with reached(dependencies) as http:
        caller = Caller(http, revision, capabilities or {}, session_id=session_id)
        client = Client(caller if session_id else await caller.open())
        try:
            yield client
        finally:
            await client.close()
