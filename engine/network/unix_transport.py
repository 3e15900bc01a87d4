"""An httpx transport for HTTP/1.1 over a unix socket, with kept connections. httpx's own costs ten times as much per request."""

import asyncio
import select
import time
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from typing import cast

import h11
import httpx

_MOST_KEPT = 100
_HEAD_BYTES = 100 * 1024
_UNREAD_BYTES = 256 * 1024
"""Received bytes that wait to be read; beyond this, reading from the peer pauses."""


class UnixTransport(httpx.AsyncBaseTransport):
    """Keeps connections for `keepalive_s` seconds. Observes only the connect time-out of a request: callers bound the rest.

    Sends a request once. Only ConnectError and ConnectTimeout mean that nothing was sent.
    """

    def __init__(self, path: str, keepalive_s: float) -> None:
        self._path, self._keepalive_s = path, keepalive_s
        self._open: set[_Connection] = set()
        self._idle: list[_Connection] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        connection = self._kept() or await self._connected(request)
        try:
            with _httpx_errors():
                await connection.send(request)
                head = await connection.head()
        except BaseException:
            self._drop(connection)
            raise
        return httpx.Response(head.status_code, headers=head.headers.raw_items(), stream=_Body(connection, self), request=request)

    async def aclose(self) -> None:
        """Closes all connections, also those in use: their readers get an error."""
        self._idle.clear()
        for connection in [*self._open]:
            self._drop(connection)

    def give_back(self, connection: "_Connection") -> None:
        """Called when the answer was read or given up."""
        if connection in self._open and self._keepalive_s and len(self._idle) < _MOST_KEPT and connection.is_done():
            connection.idle_since = time.monotonic()
            self._idle.append(connection)
        else:
            self._drop(connection)

    def _kept(self) -> "_Connection | None":
        """The connection that was used last. If it is too old, all are."""
        oldest = time.monotonic() - self._keepalive_s
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_since < oldest:
                for old in (connection, *self._idle):
                    self._drop(old)
                self._idle.clear()
            elif connection.is_quiet():
                return connection
            else:
                self._drop(connection)
        return None

    async def _connected(self, request: httpx.Request) -> "_Connection":
        within_s = cast("dict[str, float | None]", request.extensions.get("timeout", {})).get("connect")
        try:
            async with asyncio.timeout(within_s):
                _, connection = await asyncio.get_running_loop().create_unix_connection(_Connection, self._path)
        except TimeoutError as error:
            raise httpx.ConnectTimeout("", request=request) from error
        except OSError as error:
            raise httpx.ConnectError(str(error), request=request) from error
        self._open.add(connection)
        return connection

    def _drop(self, connection: "_Connection") -> None:
        self._open.discard(connection)
        connection.abort()


class _Body(httpx.AsyncByteStream):
    def __init__(self, connection: "_Connection", transport: UnixTransport) -> None:
        self._connection, self._transport = connection, transport

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _httpx_errors():
            while isinstance(event := await self._connection.event(), h11.Data):
                yield bytes(event.data)

    async def aclose(self) -> None:
        self._transport.give_back(self._connection)


class _Connection(asyncio.Protocol):
    """One request at a time. Raises h11's ProtocolErrors, ConnectionError."""

    def __init__(self) -> None:
        self.idle_since = 0.0
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
        self._news, self._writable = asyncio.Event(), asyncio.Event()
        self._writable.set()
        self._unread = 0
        self._broken: BaseException | None = None
        self._is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._http.receive_data(data)
        self._unread += len(data)
        if self._unread > _UNREAD_BYTES:
            self._transport.pause_reading()
        self._news.set()

    def eof_received(self) -> None:
        """Returns None, so that asyncio closes the connection. This also ends an answer without a declared length."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost, self._broken = True, self._broken or exc
        if self._broken is None:
            self._http.receive_data(b"")
        self._news.set()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def send(self, request: httpx.Request) -> None:
        """Stops early if the peer has left: it may have answered before."""
        said = self._http.send(h11.Request(method=request.method, target=request.url.raw_path, headers=request.headers.raw)) or b""
        async for piece in cast("httpx.AsyncByteStream", request.stream):
            self._write(said + (self._http.send(h11.Data(data=piece)) or b""))
            said = b""
            await self._writable.wait()
            if self._is_lost:
                return
        self._write(said + (self._http.send(h11.EndOfMessage()) or b""))

    async def head(self) -> h11.Response:
        while not isinstance(event := await self.event(), h11.Response):
            if not isinstance(event, h11.InformationalResponse):
                raise ConnectionError("no answer")
        return event

    async def event(self) -> "h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]":
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._broken is not None:
                raise ConnectionError(str(self._broken)) from self._broken
            self._read_on()
            self._news.clear()
            await self._news.wait()
        return event

    def is_done(self) -> bool:
        """Whether both sides have finished, so that another request may follow. Prepares for it."""
        if self._is_lost or self._http.trailing_data[0] or not (self._http.our_state is self._http.their_state is h11.DONE):
            return False
        self._http.start_next_cycle()
        self._read_on()
        return True

    def is_quiet(self) -> bool:
        """Whether the peer has neither sent anything since nor left. Asks the socket: the event loop may not know yet."""
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket"), select.POLLIN)
        return not (self._is_lost or self._unread or poll.poll(0))

    def abort(self) -> None:
        self._broken = self._broken or ConnectionAbortedError("closed here")
        self._news.set()
        self._transport.abort()

    def _read_on(self) -> None:
        if self._unread > _UNREAD_BYTES:
            self._transport.resume_reading()
        self._unread = 0

    def _write(self, data: bytes) -> None:
        # uvloop, unlike asyncio, raises RuntimeError for writes after the end.
        if data and not self._transport.is_closing():
            self._transport.write(data)


@contextmanager
def _httpx_errors() -> Generator[None]:
    """Turns errors of h11 and of the connection into httpx's."""
    try:
        yield
    except h11.RemoteProtocolError as error:
        raise httpx.RemoteProtocolError(str(error)) from error
    except h11.LocalProtocolError as error:
        raise httpx.LocalProtocolError(str(error)) from error
    except ConnectionError as error:
        raise httpx.ReadError(str(error)) from error
