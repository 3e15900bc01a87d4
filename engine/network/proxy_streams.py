"""Passes bytes between two connections: unchanged (a tunnel), or as one HTTP request and its answer."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import h11

_CHUNK = 64 * 1024
_HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer", b"upgrade")
)
_HTTP_1_1 = b"1.1"
_SWITCHING = 101

Touch = Callable[[], None]
"""Called on all traffic."""

HTTP = 80
"""The port that a Host header need not name."""


@dataclass(frozen=True, slots=True)
class Target:
    """`host` is in lower case, without brackets and final dot. `path` is empty for CONNECT."""

    host: str
    port: int
    path: str = ""

    @property
    def authority(self) -> str:
        """The value of a Host header."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == HTTP else f"{name}:{self.port}"


@dataclass(frozen=True, slots=True)
class Stream:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes | None) -> None:
        """Raises OSError, also if the connection is closed."""
        if data:
            self._require_open()
            self.writer.write(data)
            await self.writer.drain()

    def send_eof(self) -> None:
        """End our side of the stream. Raises OSError."""
        self._require_open()
        self.writer.write_eof()

    async def close(self, bound_s: float) -> None:
        """Closes once everything is sent; drops what the other side does not take within `bound_s` seconds."""
        self.writer.close()
        try:
            async with asyncio.timeout(bound_s):
                await self.writer.wait_closed()
        except OSError:  # also the time-out
            self.abort()
        except asyncio.CancelledError:
            self.abort()
            raise

    def abort(self) -> None:
        self.writer.transport.abort()

    def _require_open(self) -> None:
        # uvloop, unlike asyncio, raises RuntimeError for writes after the end.
        if self.writer.transport.is_closing():
            raise ConnectionResetError("It is closed.")


async def next_event(connection: h11.Connection, stream: Stream, touch: Touch) -> h11.Event | None:
    """None if no more HTTP follows. Raises OSError, and h11.RemoteProtocolError for what is not HTTP, too large or cut off."""
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Event):
            return event
        if event is h11.PAUSED:
            return None
        connection.receive_data(await stream.reader.read(_CHUNK))
        touch()


async def tunnel(near: Stream, far: Stream, first: bytes, touch: Touch, judge: Callable[[bytes], bool]) -> None:
    """Runs until both sides have ended. `first` was read from `near` already. Raises OSError in a group.

    Sends nothing to `far` before `judge`, which may raise OSError, returns True for the first bytes.
    """
    async with asyncio.TaskGroup() as both:
        both.create_task(_judged(near.reader, far, touch, first, judge))
        both.create_task(_pump(far.reader, near, touch))


async def _judged(source: asyncio.StreamReader, sink: Stream, touch: Touch, first: bytes, judge: Callable[[bytes], bool]) -> None:
    while not judge(first):
        chunk = await source.read(_CHUNK)
        touch()
        if not chunk:
            break
        first += chunk
    await sink.send(first)
    await _pump(source, sink, touch)


async def _pump(source: asyncio.StreamReader, sink: Stream, touch: Touch) -> None:
    while chunk := await source.read(_CHUNK):
        await sink.send(chunk)
        touch()
    sink.send_eof()


async def forward(request: h11.Request, target: Target, client: tuple[h11.Connection, Stream], far: Stream, touch: Touch) -> None:
    """Passes on one request, framed anew, and its answer. Raises OSError and h11.ProtocolError, in a group or not."""
    connection, near = client
    onward = h11.Connection(h11.CLIENT)
    headers = [(b"host", target.authority.encode()), *_end_to_end(list(request.headers), b"host"), (b"connection", b"close")]
    await far.send(onward.send(h11.Request(method=request.method, target=target.path, headers=headers)))
    async with asyncio.TaskGroup() as both:
        upload = both.create_task(_upload(connection, near, onward, far, touch))
        await _download(request, (connection, near), (onward, far), touch)
        upload.cancel()


async def _upload(connection: h11.Connection, near: Stream, onward: h11.Connection, far: Stream, touch: Touch) -> None:
    while True:
        event = await next_event(connection, near, touch)
        if not isinstance(event, h11.Data | h11.EndOfMessage):
            return
        # A server that stops reading can still answer.
        with contextlib.suppress(OSError):
            await far.send(onward.send(event if isinstance(event, h11.Data) else h11.EndOfMessage()))
        if isinstance(event, h11.EndOfMessage):
            return


async def _download(
    request: h11.Request, client: tuple[h11.Connection, Stream], server: tuple[h11.Connection, Stream], touch: Touch
) -> None:
    connection, near = client
    while True:
        event = await next_event(*server, touch)
        match event:
            case h11.InformationalResponse() if request.http_version >= _HTTP_1_1 and event.status_code != _SWITCHING:
                await near.send(connection.send(h11.InformationalResponse(status_code=event.status_code, headers=[])))
            case h11.Response():
                headers = [*_end_to_end(list(event.headers)), (b"connection", b"close")]
                await near.send(connection.send(h11.Response(status_code=event.status_code, headers=headers, reason=event.reason)))
            case h11.Data():
                await near.send(connection.send(event))
            case h11.EndOfMessage():
                await near.send(connection.send(h11.EndOfMessage()))
                return
            case _:
                raise h11.RemoteProtocolError("the answer breaks off")


def _end_to_end(headers: Iterable[tuple[bytes, bytes]], *left_out: bytes) -> list[tuple[bytes, bytes]]:
    """Drops headers for the next hop: the known ones, and those that `Connection` names."""
    named = {part.strip().lower() for name, value in headers for part in value.split(b",") if name == b"connection"}
    drop = _HOP_BY_HOP | (named - {b"content-length", b"transfer-encoding", b"host"}) | set(left_out)
    return [(name, value) for name, value in headers if name not in drop]
