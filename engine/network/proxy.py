"""The proxy of a sandbox, on a unix socket: it connects one run to its allowed hosts, at public addresses."""

import asyncio
import contextlib
import socket
from collections.abc import Sequence
from dataclasses import dataclass

import h11

from engine.network.addresses import Address
from engine.network.proxy_greeting import Greeting, greeted
from engine.network.proxy_refusal import Refused
from engine.network.proxy_rules import Asked, Asks, Rules
from engine.network.proxy_streams import Stream, Target, forward, next_event, tunnel
from engine.network.proxy_target import target_of

_BACKLOG = 1024
_LINGER_S = 1.0
_CHUNK = 64 * 1024
_BUSY = (
    b"HTTP/1.1 503 Too many connections\r\n"
    b"Proxy-Status: tool-agent; error=connection_limit_reached\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)


@dataclass(frozen=True, slots=True)
class ProxyLimits:
    """The limits of one run. `idle_s`: the longest silence on a connection."""

    connections: int = 128
    header_bytes: int = 32 * 1024
    header_s: float = 10.0
    connect_s: float = 10.0
    idle_s: float = 300.0


class Room:
    """Limits the connections of all runs of this worker together: each costs two file descriptors."""

    def __init__(self, places: int) -> None:
        self._free = places

    def take(self) -> bool:
        if self._free <= 0:
            return False
        self._free -= 1
        return True

    def give_back(self) -> None:
        self._free += 1


class Proxy:
    """Serves from `start` to `aclose`, which ends every connection. `asks` records the requested connections."""

    def __init__(self, rules: Rules, asks: Asks, limits: ProxyLimits, room: Room) -> None:
        self._rules, self.asks, self._limits, self._room = rules, asks, limits, room
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, listening: socket.socket) -> None:
        """Serves on a bound unix socket, and owns it from then on."""
        self._server = await asyncio.start_unix_server(self._accept, sock=listening, backlog=_BACKLOG)

    async def aclose(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= self._limits.connections or not self._room.take():
            writer.write(_BUSY)
            writer.close()
            return
        task = asyncio.create_task(self._serve(Stream(reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._room.give_back()

    async def _serve(self, near: Stream) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=self._limits.header_bytes)
        try:
            try:
                await self._exchange(connection, near)
            except Refused as refused:
                await self._answer(connection, near, refused)
            except TimeoutError:
                await self._answer(connection, near, Refused(504, "http_response_timeout", f"Nothing came for {self._limits.idle_s:g} s."))
            except (OSError, h11.ProtocolError) as error:
                await self._answer(connection, near, Refused(502, "http_protocol_error", f"The exchange broke off: {error}."))
        except asyncio.CancelledError:
            near.abort()
            raise
        await near.close(self._limits.idle_s)

    async def _exchange(self, connection: h11.Connection, near: Stream) -> None:
        request = await self._request(connection, near)
        if request is None:
            return
        target = target_of(request)
        far = await self._connected(target)
        try:
            async with asyncio.timeout(self._limits.idle_s) as limit:
                await self._relay(request, target, (connection, near), far, limit)
        except BaseException:
            far.abort()
            raise
        await far.close(self._limits.idle_s)

    async def _relay(
        self, request: h11.Request, target: Target, client: tuple[h11.Connection, Stream], far: Stream, limit: asyncio.Timeout
    ) -> None:
        """Raises OSError or h11.ProtocolError if one side breaks off."""
        connection, near = client
        loop = asyncio.get_running_loop()

        def touch() -> None:
            limit.reschedule(loop.time() + self._limits.idle_s)

        try:
            if target.path:
                await forward(request, target, client, far, touch)
            else:
                await near.send(connection.send(h11.Response(status_code=200, headers=[], reason="Connection established")))
                await tunnel(near, far, connection.trailing_data[0], touch, lambda data: self._is_judged(data, target))
        except ExceptionGroup as group:
            known, rest = group.split((OSError, h11.ProtocolError))
            if known is None or rest is not None:
                raise
            raise _one_of(known) from group

    def _is_judged(self, data: bytes, target: Target) -> bool:
        """Whether enough was read to see that the tunnel goes to its own host. Raises ConnectionError if TLS greets another host."""
        name = greeted(data)
        if name is Greeting.ENDLESS:
            raise ConnectionError("its name would come after we had stopped looking")
        if isinstance(name, Greeting):
            return name is not Greeting.UNFINISHED
        if name != target.host:
            self.asks.add(Asked(name, target.port, allowed=False, reason=f"a TLS greeting for it in a tunnel to {target.host}"))
            raise ConnectionError(name)
        return True

    async def _request(self, connection: h11.Connection, near: Stream) -> h11.Request | None:
        """None if the client closed without a request. Raises Refused."""
        try:
            async with asyncio.timeout(self._limits.header_s):
                event = await next_event(connection, near, _nothing)
                if isinstance(event, h11.Request) and event.method == b"CONNECT":
                    await next_event(connection, near, _nothing)
        except TimeoutError:
            raise Refused(408, "http_request_error", f"The request was not there after {self._limits.header_s:g} s.") from None
        except h11.RemoteProtocolError as error:
            raise Refused(error.error_status_hint, "http_protocol_error", f"This is no request: {error}.") from error
        return event if isinstance(event, h11.Request) else None

    async def _connected(self, target: Target) -> Stream:
        """Connects to a judged address, whatever the name resolves to later, and records the attempt. Raises Refused."""
        allowed = False
        try:
            pattern = self._rules.pattern_for(target.host, target.port)
            addresses = await self._rules.addresses(target.host, target.port)
            allowed = True
            stream = await self._first(addresses, target)
        except Refused as refused:
            self.asks.add(Asked(target.host, target.port, allowed=allowed, reason=refused.reason))
            raise
        self.asks.add(Asked(target.host, target.port, allowed=True, reason=f"allowed by {pattern}"))
        return stream

    async def _first(self, addresses: Sequence[Address], target: Target) -> Stream:
        failure: OSError = ConnectionError("it has no address")
        try:
            async with asyncio.timeout(self._limits.connect_s):
                for address in addresses:
                    try:
                        return Stream(*await asyncio.open_connection(str(address), target.port))
                    except OSError as error:
                        failure = error
        except TimeoutError:
            message = f"No connection to {target.host} within {self._limits.connect_s:g} s."
            raise Refused(504, "connection_timeout", message) from None
        raise Refused(502, "connection_refused", f"No connection to {target.host}: {failure}.") from failure

    async def _answer(self, connection: h11.Connection, near: Stream, refused: Refused) -> None:
        if connection.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        body = f"tool-agent sandbox: {refused.message}\n".encode()
        headers = [
            ("Content-Type", "text/plain; charset=utf-8"),
            ("Content-Length", str(len(body))),
            ("Proxy-Status", f"tool-agent; error={refused.error}"),
            ("Connection", "close"),
        ]
        with contextlib.suppress(OSError, TimeoutError, h11.LocalProtocolError):
            async with asyncio.timeout(_LINGER_S):
                await near.send(
                    connection.send(
                        h11.Response(status_code=refused.status, headers=headers, reason=refused.reason.encode("ascii", "replace")[:200])
                    )
                )
                await near.send(connection.send(h11.Data(data=body)))
                near.send_eof()
                # Closing with unread data would reset the connection, and the client would not see the answer.
                while await near.reader.read(_CHUNK):
                    pass


def _one_of(group: ExceptionGroup[OSError | h11.ProtocolError]) -> OSError | h11.ProtocolError:
    first = group.exceptions[0]
    return _one_of(first) if isinstance(first, ExceptionGroup) else first


def _nothing() -> None: ...
