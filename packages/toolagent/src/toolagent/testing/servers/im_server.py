"""A test server for IM over a real WebSocket on 127.0.0.1: contacts, the messages it keeps for them, and its controls."""

import asyncio
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import JsonValue, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from toolagent.contracts.im import ImMessage, ImType
from toolagent.testing.servers.im_faults import ImFault, ImMoment
from toolagent.testing.servers.serving import ServerThread
from toolagent.testing.servers.told_faults import ToldFaults

__all__ = ["ImServer"]

_GOING_AWAY, _NO_CONTACT = 1001, 4400
_ABSENT, _UNAUTHORIZED = 503, 401
_GARBAGE = ("no JSON", "[]", '{"id": 7}', "\N{SNOWMAN}" * 100)


@dataclass
class _Contact:
    """`waiting` messages are not acknowledged yet; a new connection gets them again."""

    waiting: dict[tuple[str, str], ImMessage] = field(default_factory=dict[tuple[str, str], ImMessage])
    socket: WebSocket | None = None
    connections: int = 0
    delivered: int = 0
    acknowledged: int = 0
    refused: int = 0

    def shown(self) -> dict[str, JsonValue]:
        counts = {name: value for name, value in vars(self).items() if isinstance(value, int)}
        return {"connected": self.socket is not None, "waiting": len(self.waiting), **counts}


class ImServer(ServerThread):
    """`with ImServer() as server:`, then set `TOOL_AGENT_IM_URL` to `server.im_url`. Its messages outlive a stop and a start.

    With a `token`, contacts must send it as a bearer token.
    """

    def __init__(self, port: int = 0, *, token: str | None = None, faults: Iterable[ImFault] = ()) -> None:
        self._token = token
        self._faults = ToldFaults(ImFault, faults)
        self.fail = self._faults.add
        self._contacts: dict[str, _Contact] = {}
        self._messages: list[ImMessage] = []
        """All accepted messages in order, with repetitions."""
        routes = [
            WebSocketRoute("/", self._serve),
            Route("/control/state", self._show),
            Route("/control/messages", self._send_for, methods=["POST"]),
            *self._faults.routes("/control/faults"),
        ]
        super().__init__(Starlette(routes=routes), port)

    @property
    def im_url(self) -> str:
        return self.url.replace("http://", "ws://")

    def messages_to(self, contact: str) -> tuple[ImMessage, ...]:
        """All messages accepted for this contact, in order."""
        return tuple(message for message in tuple(self._messages) if message.receiver == contact)

    def state(self) -> dict[str, JsonValue]:
        """The answer of `/control/state`: all `contacts` with counts, and all `messages`."""
        contacts: dict[str, JsonValue] = {name: contact.shown() for name, contact in tuple(self._contacts.items())}
        return {"contacts": contacts, "messages": [one.model_dump(mode="json", exclude_none=True) for one in tuple(self._messages)]}

    async def _serve(self, socket: WebSocket) -> None:
        name = socket.query_params.get("contact_id", "")
        fault = self._fault("connect", name)
        if (status := self._refusal(socket, fault)) is not None:
            await socket.send_denial_response(Response(status_code=status))
            return
        await socket.accept()
        if not name:
            await socket.close(_NO_CONTACT, "contact_id is missing in the query")
            return
        contact = self._contacts.setdefault(name, _Contact())
        contact.socket, contact.connections = socket, contact.connections + 1
        try:
            for message in tuple(contact.waiting.values()):
                await self._deliver(name, message)
            while True:
                await self._receive(name, socket, await socket.receive_text())
        except (WebSocketDisconnect, RuntimeError, KeyError):
            pass  # the contact left, was dropped, or sent bytes
        finally:
            if contact.socket is socket:
                contact.socket = None

    def _fault(self, moment: ImMoment, contact: str) -> ImFault | None:
        return self._faults.next(lambda fault: fault.hits(moment, contact))

    def _refusal(self, socket: WebSocket, fault: ImFault | None) -> int | None:
        if fault is not None:
            return _ABSENT if fault.kind == "absent" else _UNAUTHORIZED
        is_known = self._token is None or socket.headers.get("authorization") == f"Bearer {self._token}"
        return None if is_known else _UNAUTHORIZED

    async def _receive(self, name: str, socket: WebSocket, text: str) -> None:
        fault = self._fault("receive", name)
        if fault is not None and fault.kind == "slow_reader":
            await asyncio.sleep(fault.seconds)
        try:
            # A contact cannot send in another's name.
            message = ImMessage.model_validate_json(text).model_copy(update={"sender": name})
        except ValidationError:
            return
        if message.type in {ImType.ACK, ImType.ERROR}:
            await self._settle(name, message)
            return
        await self._accept(message)
        if fault is not None and fault.kind == "lost_ack":
            await socket.close(_GOING_AWAY)
            return
        await socket.send_text(_text(ImMessage(id=message.id, sender=message.receiver, receiver=name, type=ImType.ACK)))

    async def _settle(self, name: str, told: ImMessage) -> None:
        contact = self._contacts[name]
        if contact.waiting.pop((told.receiver, told.id), None) is None:
            return
        if told.type == ImType.ACK:
            contact.acknowledged += 1
            return
        contact.refused += 1
        if (sender := self._contacts.get(told.receiver)) is not None and sender.socket is not None:
            await sender.socket.send_text(_text(told))

    async def _accept(self, message: ImMessage) -> None:
        self._messages.append(message)
        self._contacts.setdefault(message.receiver, _Contact()).waiting[message.sender, message.id] = message
        await self._deliver(message.receiver, message)

    async def _deliver(self, name: str, message: ImMessage) -> None:
        contact = self._contacts[name]
        if contact.socket is None:
            return
        socket, fault = contact.socket, self._fault("deliver", name)
        kind = fault.kind if fault else None
        try:
            if kind == "drop":
                await self._drop(contact, socket)
                return
            if kind == "stall" and fault is not None:
                time.sleep(fault.seconds)  # noqa: ASYNC251 - the whole server stands still
            for frame in _before(fault, name):
                await socket.send_text(frame)
            for _ in range(2 if kind == "twice" else 1):
                await socket.send_text(_text(message))
                contact.delivered += 1
            if kind == "drop_after":
                await self._drop(contact, socket)
        except (WebSocketDisconnect, RuntimeError):
            contact.socket = None

    async def _drop(self, contact: _Contact, socket: WebSocket) -> None:
        contact.socket = None
        await socket.close(_GOING_AWAY)

    async def _show(self, _: Request) -> Response:
        return JSONResponse(self.state())

    async def _send_for(self, request: Request) -> Response:
        try:
            message = ImMessage.model_validate_json(await request.body())
        except ValidationError as error:
            return JSONResponse({"error": str(error)}, 400)
        await self._accept(message)
        return Response(status_code=202)


def _before(fault: ImFault | None, name: str) -> Iterator[str]:
    """Frames that come before the message."""
    if fault is None:
        return
    other = ImMessage(id="other", sender="flood", receiver=name, content="hello", timestamp=datetime.now(UTC))
    match fault.kind:
        case "garbage":
            yield from _GARBAGE
        case "unknown_type":
            yield _text(other.model_copy(update={"type": "dance"}))
        case "too_large":
            yield _text(other.model_copy(update={"content": "x" * fault.count}))
        case "flood":
            for number in range(fault.count):
                yield _text(other.model_copy(update={"id": f"flood-{number}", "receiver_chat_id": "flood"}))
        case _:
            return


def _text(message: ImMessage) -> str:
    return message.model_dump_json(exclude_none=True)
