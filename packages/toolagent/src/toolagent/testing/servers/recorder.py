"""A proxy in front of a real endpoint of the Messages API.

It writes a scenario from the answers.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TypedDict

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from toolagent.client.bounded_answers import BoundedAnswers
from toolagent.testing.servers.api_errors import ApiError
from toolagent.testing.servers.received import received_message
from toolagent.testing.servers.recording import Recording
from toolagent.testing.servers.requests import MessagesRequest, read_request
from toolagent.testing.servers.serving import ConnectionCut, ServerThread

__all__ = ["Recorder"]

_TIMEOUT = httpx.Timeout(600, connect=30)
_MAX_BYTES = 64 * 1024 * 1024
_PASSED_ON = ("authorization", "content-type", "x-api-key", "user-agent")
_VENDORS = "anthropic-"
_NOT_PASSED_BACK = frozenset({"connection", "content-encoding", "content-length", "date", "keep-alive", "server", "transfer-encoding"})
_METHODS = ["GET", "POST", "DELETE"]


class _State(TypedDict):
    client: httpx.AsyncClient


class Recorder(ServerThread):
    """Passes requests on to `to`, a base URL, and writes `scenario` anew after each turn. Keys are passed on and never written.

    With `keep_pace` the scenario takes as long as the real answers did.
    """

    def __init__(self, to: str, scenario: Path, port: int = 0, *, keep_pace: bool = False) -> None:
        self.recording = Recording(scenario.stem)
        self._to = to.rstrip("/")
        self._file = scenario
        self._keep_pace = keep_pace
        route = Route("/{path:path}", self._passed, methods=_METHODS)
        super().__init__(Starlette(routes=[route], lifespan=_with_client), port)

    async def _passed(self, request: Request) -> Response:
        body = await request.body()
        headers = {name: value for name, value in request.headers.items() if name in _PASSED_ON or name.startswith(_VENDORS)}
        self.recording.hide(headers.get("x-api-key", ""))
        self.recording.hide(headers.get("authorization", "").removeprefix("Bearer "))
        target = f"{self._to}{request.url.path}{f'?{request.url.query}' if request.url.query else ''}"
        client: httpx.AsyncClient = request.state.client
        begun = time.monotonic()
        try:
            answer = await client.send(client.build_request(request.method, target, content=body, headers=headers), stream=True)
        except httpx.TransportError as error:
            return Response(f"{self._to} cannot be reached: {error!r}", 502)
        kept = {name: value for name, value in answer.headers.items() if name not in _NOT_PASSED_BACK}
        asked = _asked(body) if request.url.path == "/v1/messages" else None
        return StreamingResponse(self._heard(asked, answer, begun), answer.status_code, kept)

    async def _heard(self, asked: MessagesRequest | None, answer: httpx.Response, begun: float) -> AsyncIterator[bytes]:
        whole = bytearray()
        try:
            async for piece in answer.aiter_bytes():
                whole += piece
                yield piece
        except httpx.TransportError as error:
            if asked is not None:
                self.recording.cut(asked)
            raise ConnectionCut from error
        finally:
            await answer.aclose()
        if asked is not None:
            await self._noted(asked, answer, bytes(whole), time.monotonic() - begun)

    async def _noted(self, asked: MessagesRequest, answer: httpx.Response, body: bytes, seconds: float) -> None:
        if not answer.is_success:
            self.recording.refused(asked, answer.status_code, answer.headers.get("retry-after"))
            return
        message = received_message(body, answer.headers.get("content-type", ""))
        if message is None:
            self.recording.cut(asked)
            return
        self.recording.answered(asked, message, seconds if self._keep_pace else None)
        await asyncio.to_thread(_write, self._file, self.recording.text())


@asynccontextmanager
async def _with_client(_app: Starlette) -> AsyncGenerator[_State]:
    hooks = {"response": [BoundedAnswers(_MAX_BYTES)]}
    async with httpx.AsyncClient(timeout=_TIMEOUT, headers={"accept-encoding": "identity"}, event_hooks=hooks) as client:
        yield {"client": client}


def _asked(body: bytes) -> MessagesRequest | None:
    """None for a request that the endpoint refuses."""
    try:
        return read_request(body)
    except ApiError:
        return None


def _write(path: Path, text: str) -> None:
    """Replaces the file at once, so a reader never sees half a scenario, not even after a crash."""
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        file.write(text)
    Path(file.name).replace(path)
