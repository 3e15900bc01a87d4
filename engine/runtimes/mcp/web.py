"""The connection to a remote server: sends the SDK's HTTP requests once, only to allowed addresses, and bounds the answers."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import cast

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import JsonValue

from engine.network.tls import machine_tls
from engine.runtimes.failures import NotSent
from engine.runtimes.http.destination import Judge
from engine.runtimes.mcp.answers import error_of
from engine.runtimes.mcp.codes import BROKEN, FORGOTTEN, NOT_SENT, STRANGE, TOO_LARGE
from engine.runtimes.mcp.oauth.logins import Login, is_refusal
from engine.runtimes.mcp.oauth.sending import Judged
from engine.runtimes.mcp.pipes import Streams
from engine.runtimes.mcp.wire import IN_ANSWER_TO
from toolagent.core.calls.json_size import Excess, excess_of

_KEEPALIVE_S = 2.0
_NEVER_CONNECTED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol)
_GATEWAY_GAVE_UP = (502, 504)
_UNAUTHORIZED = 401
_NOT_FOUND = 404
_GOODBYE_S = 3.0
_SESSION = "mcp-session-id"
_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")
_LONGEST_END = 4
_LARGE_BYTES = 64 * 1024
"""Longer answers are parsed in a thread, so that the event loop stays free."""

_MOST_TOKENS = 3
"""Tokens that are tried for one request: the first may have expired, and the second may lack a scope."""

_UNBOUNDED = httpx2.Timeout(None, connect=10.0)
"""Only connecting has a time-out: callers bound the rest."""


@dataclass(frozen=True, slots=True)
class WebServer:
    """`headers` is called for each request, because keys change. `public` judges addresses; None allows all."""

    url: str
    is_sse: bool
    headers: Callable[[], Mapping[str, str]]
    public: Judge | None
    most_bytes: int
    max_values: int
    login: Login | None = None
    """Provides a token if the server wants one."""


@contextlib.asynccontextmanager
async def over_web(server: WebServer) -> AsyncGenerator[Streams]:
    """Raises the SDK's errors if the server cannot be reached."""

    def client(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,  # noqa: ARG001 - the SDK's, of five seconds
        auth: httpx2.Auth | None = None,  # noqa: ARG001 - the SDK's, which is none
    ) -> httpx2.AsyncClient:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0 if server.public else 20, keepalive_expiry=_KEEPALIVE_S)
        inner = httpx2.AsyncHTTPTransport(verify=machine_tls(), trust_env=False, limits=limits)
        # No cookies, no redirects, nothing from the environment.
        return httpx2.AsyncClient(
            transport=Guarded(Judged(inner, server.public), server),
            headers={"Accept-Encoding": "identity", **(headers or {})},
            timeout=_UNBOUNDED,
            max_redirects=0,
            trust_env=False,
        )

    if server.is_sse:
        async with sse_client(server.url, httpx_client_factory=client) as streams:
            yield cast("Streams", streams)
        return
    most = server.most_bytes
    async with client() as ours, streamable_http_client(server.url, http_client=ours, max_sse_event_size=most) as streams:
        yield cast("Streams", streams)


class Guarded(httpx2.AsyncBaseTransport):
    """Turns failures into answers that describe them: on an exception, the SDK would end the connection for all its calls."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, server: WebServer) -> None:
        self._inner, self._server = inner, server

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "DELETE":
            # The final request does not wait long, and its answer is ignored.
            async with asyncio.timeout(_GOODBYE_S):
                response = await self._sent(request)
                await response.aclose()
                return httpx2.Response(response.status_code)
        if request.method != "POST":
            response = await self._sent(request)
            if not _is_packed(response):
                return response
            await response.aclose()
            raise httpx2.DecodingError("The server's events are packed, which was not asked for.")
        try:
            return await self._taken(request, await self._sent(request))
        except NotSent as refusal:
            told = error_of(refusal)
            return _said(request, told.code, told.message, told.data)
        except _NEVER_CONNECTED as error:
            return _said(request, NOT_SENT, f"No connection to {_place(request.url)}: {error or 'timed out'}")
        except httpx2.TransportError as error:
            return _said(request, BROKEN, f"The connection to the server broke before it had answered ({type(error).__name__}).")

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _sent(self, request: httpx2.Request) -> httpx2.Response:
        """Sends the request with keys, and with a token if there is a login. A server that refuses has done nothing: it gets a new token.

        Raises NotSent, httpx2.TransportError.
        """
        login = self._server.login
        if _origin(request.url) != _origin(httpx2.URL(self._server.url)):
            # Keys are only for the server itself.
            return await self._inner.handle_async_request(request)
        request.headers.update(self._server.headers())
        token = await login.token() if login is not None else None
        left = _MOST_TOKENS
        while True:
            if token is not None:
                request.headers["Authorization"] = f"Bearer {token}"
            response = await self._inner.handle_async_request(request)
            if login is None or not is_refusal(response):
                return response
            await response.aclose()
            left -= 1
            if not left:
                raise await login.refused()
            token = await login.renewed(token, response, is_again=left < _MOST_TOKENS - 1)

    async def _taken(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """The answer to a message. Raises httpx2.TransportError."""
        status, kind = response.status_code, response.headers.get("content-type", "").lower()
        if status in _GATEWAY_GAVE_UP:
            await response.aclose()
            return _said(request, BROKEN, f"A gateway before the server answered with status {status}: it is not known what the tool did.")
        if status == _NOT_FOUND and _SESSION in request.headers:
            await response.aclose()
            return _said(request, FORGOTTEN, "The server knows nothing of our session any more.")
        if _is_packed(response):
            await response.aclose()
            return _said(request, TOO_LARGE, "The server's answer is packed, which was not asked for.")
        stream = cast("httpx2.AsyncByteStream", response.stream)
        if kind.startswith("text/event-stream") and not response.is_error:
            return httpx2.Response(status, headers=response.headers, stream=_Bounded(stream, self._server, request))
        body = await _whole(stream, self._server.most_bytes)
        if body is None:
            return _said(request, TOO_LARGE, _too_much(self._server.most_bytes))
        if (excess := await _excess_of(body, self._server.max_values)) is not None:
            return _said(request, TOO_LARGE, _too_many(excess))
        if response.is_error and status != _NOT_FOUND and not _is_error_of_the_protocol(body):
            return _said(request, STRANGE, _told_of(status))
        return httpx2.Response(status, headers=response.headers, content=body)


class _Bounded(httpx2.AsyncByteStream):
    """The events that answer one message. An event with an error replaces what exceeds the limits."""

    def __init__(self, inner: httpx2.AsyncByteStream, server: WebServer, request: httpx2.Request) -> None:
        self._inner, self._server, self._request = inner, server, request
        self._call = _call_of(request)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, event = 0, bytearray()
        async for chunk in self._inner:
            size += len(chunk)
            if size > self._server.most_bytes:
                yield self._refusal(_too_much(self._server.most_bytes))
                return
            # Passes on whole events: an error in the middle of an event would not be a message.
            event += chunk
            searched = max(0, len(event) - len(chunk) - _LONGEST_END)
            end = max(event.rfind(mark, searched) + len(mark) if mark in event[searched:] else 0 for mark in _ENDS)
            if end:
                whole = bytes(event[:end])
                if (excess := await _excess_of(whole, self._server.max_values)) is not None:
                    yield self._refusal(_too_many(excess))
                    return
                yield await _marked(whole, self._call) if self._call else whole
                del event[:end]
        if event:
            yield bytes(event)

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _refusal(self, why: str) -> bytes:
        return f"event: message\ndata: {json.dumps(_error(self._request, TOO_LARGE, why))}\n\n".encode()


def _origin(url: httpx2.URL) -> tuple[str, bytes, int | None]:
    return url.scheme, url.raw_host, url.port


def _message_of(request: httpx2.Request) -> JsonValue:
    message: JsonValue = json.loads(request.content)
    return message


def _call_of(request: httpx2.Request) -> str | None:
    """The id of the call that a request makes; None for other requests."""
    match _message_of(request):
        case {"method": "tools/call", "params": {"_meta": {"progressToken": str() as call_id}}}:
            return call_id
        case _:
            return None


async def _excess_of(body: bytes, max_values: int) -> Excess | None:
    return await asyncio.to_thread(excess_of, body, max_values) if len(body) > _LARGE_BYTES else excess_of(body, max_values)


async def _marked(events: bytes, call_id: str) -> bytes:
    """Adds the call's id to messages in its stream: over HTTP nothing else tells the call."""
    if b'"method"' not in events:
        return events
    return await asyncio.to_thread(_marked_lines, events, call_id) if len(events) > _LARGE_BYTES else _marked_lines(events, call_id)


def _marked_lines(events: bytes, call_id: str) -> bytes:
    return b"".join(_marked_line(line, call_id) for line in events.splitlines(keepends=True))


def _marked_line(line: bytes, call_id: str) -> bytes:
    if not line.startswith(b"data:") or b'"method"' not in line:
        return line
    try:
        message = json.loads(line[5:])
    except ValueError:
        return line
    if not isinstance(message, dict) or "method" not in message:
        return line
    said = cast("dict[str, JsonValue]", message)
    given: object = said.get("params") or {}
    if not isinstance(given, dict):
        # Not a valid message: the SDK would end the call.
        return b""
    params = cast("dict[str, JsonValue]", given)
    meta = params.get("_meta")
    marks = meta if isinstance(meta, dict) else {}
    said["params"] = {**params, "_meta": {**marks, IN_ANSWER_TO: call_id}}
    return b"data: " + json.dumps(said).encode() + b"\n"


async def _whole(stream: httpx2.AsyncByteStream, most: int) -> bytes | None:
    """The body; None if it is larger than `most`. Raises httpx2.TransportError."""
    body = bytearray()
    try:
        async for chunk in stream:
            body += chunk
            if len(body) > most:
                return None
    finally:
        await stream.aclose()
    return bytes(body)


def _is_error_of_the_protocol(body: bytes) -> bool:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(message, dict) and "error" in message and "jsonrpc" in message


def _told_of(status: int) -> str:
    if status == _UNAUTHORIZED:
        return "It answered with status 401: give it another key in `headers`, or none, to log in there (`toolagent mcp login`)."
    return f"It answered with status {status}."


def _is_packed(response: httpx2.Response) -> bool:
    return response.headers.get("content-encoding", "identity") != "identity"


def _too_much(most: int) -> str:
    return f"The tool's answer is not taken: it is more than {most} bytes of JSON (TOOL_AGENT_MAX_RESULT_BYTES)."


def _too_many(excess: Excess) -> str:
    return f"The tool's answer is not taken: it {excess}{' (TOOL_AGENT_MAX_RESULT_VALUES)' if excess.of == 'values' else ''}."


def _said(request: httpx2.Request, code: int, message: str, data: JsonValue = None) -> httpx2.Response:
    return httpx2.Response(503, json=_error(request, code, message, data))


def _error(request: httpx2.Request, code: int, message: str, data: JsonValue = None) -> JsonValue:
    asked = _message_of(request)
    answered = asked.get("id") if isinstance(asked, dict) else None
    return {"jsonrpc": "2.0", "id": answered, "error": {"code": code, "message": message, "data": data}}


def _place(url: httpx2.URL) -> str:
    """The URL without its query, which may hold keys."""
    return str(url.copy_with(query=None, fragment=None))
