"""The WebSocket to the IM server, reopened whenever it is lost."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode, urlsplit, urlunsplit

import structlog
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus, WebSocketException

from engine.im.outbox import Outbox
from engine.im.pauses import Pauses
from engine.im.protocol import written
from toolagent.contracts.im import ImMessage

_OPEN_S, _CLOSE_S = 10.0, 2.0
_LIVED_S = 30.0
"""A connection that lasted so long resets the pauses."""

_REFUSED = (401, 403)

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Receive = Callable[[str | bytes], Awaitable[ImMessage | None]]
"""Takes a frame, and returns the response to the server. Raises OSError if the frame cannot be kept."""


@dataclass(frozen=True, slots=True)
class Line:
    """The address of the server, and options. `longest_pause_s` is between attempts. After twice `heartbeat_s` without a heartbeat
    the connection counts as lost."""

    url: str
    contact_id: str = "tool_agent"
    token: str | None = None
    max_frame_bytes: int = 262_144
    heartbeat_s: float = 20.0
    longest_pause_s: float = 60.0

    @property
    def shown(self) -> str:
        """Server and contact id, without the query, which may be secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc} as {self.contact_id}"

    @property
    def address(self) -> str:
        """The URL, with the contact id in its query."""
        parts = urlsplit(self.url)
        query = "&".join(filter(None, (parts.query, urlencode({"contact_id": self.contact_id}))))
        return urlunsplit(parts._replace(path=parts.path or "/", query=query))


class Connection:
    """Gives frames to `receive`, one after the other, and sends the messages of the outbox."""

    def __init__(self, line: Line, outbox: Outbox, receive: Receive) -> None:
        self._line, self._outbox, self._receive = line, outbox, receive
        self._pauses = Pauses(line.longest_pause_s)
        self.since: datetime | None = None
        """When the connection was opened; None while there is none."""

    def made_progress(self) -> None:
        """Something new came over the connection, so the next attempt is made soon."""
        self._pauses.reset()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            began = time.monotonic()
            lost = await self._connected()
            if time.monotonic() - began > _LIVED_S:
                self._pauses.reset()
            pause_s = self._pauses.next()
            _log.warning("im_not_connected", reason=lost, next_attempt_in_s=round(pause_s, 1))
            await asyncio.sleep(pause_s)

    async def _connected(self) -> str:
        """Opens the connection, and uses it until it is lost. Returns why."""
        line = self._line
        try:
            async with connect(
                line.address,
                additional_headers={"Authorization": f"Bearer {line.token}"} if line.token else None,
                proxy=None,
                max_size=line.max_frame_bytes,
                open_timeout=_OPEN_S,
                close_timeout=_CLOSE_S,
                ping_interval=line.heartbeat_s,
                ping_timeout=line.heartbeat_s,
            ) as socket:
                self.since = datetime.now(UTC)
                _log.info("im_connected", contact_id=line.contact_id)
                await self._use(socket)
                return "the server closed the connection"
        except InvalidStatus as error:
            status = error.response.status_code
            return f"the server answered {status}" + (": set the secret IM_TOKEN to one that it takes" if status in _REFUSED else "")
        except (WebSocketException, OSError, TimeoutError) as error:
            return str(error) or type(error).__name__
        finally:
            self.since = None

    async def _use(self, socket: ClientConnection) -> None:
        self._outbox.rewind()
        sending = asyncio.create_task(self._send(socket), name="im sender")
        try:
            async for frame in socket:
                if (answer := await self._receive(frame)) is not None:
                    await socket.send(written(answer, self._line.max_frame_bytes))
        finally:
            sending.cancel()
            await asyncio.wait((sending,))

    async def _send(self, socket: ClientConnection) -> None:
        try:
            while True:
                await socket.send(written(await self._outbox.next(), self._line.max_frame_bytes))
        except WebSocketException:
            return  # the receiving side meets the same error, and reports it
