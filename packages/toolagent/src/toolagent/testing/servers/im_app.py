"""A stand-in of an IM server as a web application: contacts on WebSockets, what it keeps for them, and what controls it."""

import asyncio
import time
from collections.abc import Iterator
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
from toolagent.testing.servers.told_faults import ToldFaults

__all__ = ["Contact", "ImApp"]

_GOING_AWAY, _NO_CONTACT = 1001, 4400
_ABSENT, _UNAUTHORIZED = 503, 401
_GARBAGE = ("no JSON", "[]", '{"id": 7}', "\N{SNOWMAN}" * 100)


@dataclass
class Contact:
    """`waiting` was not acknowledged; a new connection gets it again. `delivered` and `refused` count, each time."""

    waiting: dict[tuple[str, str], ImMessage] = field(default_factory=dict[tuple[str, str], ImMessage])
    socket: WebSocket | None = None
    connections: int = 0
    delivered: int = 0
    acknowledged: int = 0
    refused: int = 0

    def shown(self) -> dict[str, JsonValue]:
        counts = {name: getattr(self, name) for name in ("connections", "delivered", "acknowledged", "refused")}
        return {"connected": self.socket is not None, "waiting": len(self.waiting), **counts}


@dataclass
class ImApp:
    """`token` is what contacts have to bring as a bearer; without one anybody may connect."""

    token: str | None = None
    faults: ToldFaults[ImFault] = field(default_factory=lambda: ToldFaults(ImFault))
    contacts: dict[str, Contact] = field(default_factory=dict[str, Contact])
    messages: list[ImMessage] = field(default_factory=list[ImMessage])
    """All that were accepted, in their order; one that came twice is there twice."""

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                WebSocketRoute("/", self._serve),
                Route("/control/state", self._show),
                Route("/control/messages", self._send_for, methods=["POST"]),
                *self.faults.routes("/control/faults"),
            ]
        )

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
        contact = self.contacts.setdefault(name, Contact())
        contact.socket, contact.connections = socket, contact.connections + 1
        try:
            for message in tuple(contact.waiting.values()):
                await self._deliver(name, message)
            while True:
                await self._receive(name, socket, await socket.receive_text())
        except (WebSocketDisconnect, RuntimeError, KeyError):
            pass  # the contact left, or was dropped, or sent bytes
        finally:
            if contact.socket is socket:
                contact.socket = None

    def _fault(self, moment: ImMoment, contact: str) -> ImFault | None:
        return self.faults.next(lambda fault: fault.hits(moment, contact))

    def _refusal(self, socket: WebSocket, fault: ImFault | None) -> int | None:
        if fault is not None:
            return _ABSENT if fault.kind == "absent" else _UNAUTHORIZED
        is_known = self.token is None or socket.headers.get("authorization") == f"Bearer {self.token}"
        return None if is_known else _UNAUTHORIZED

    async def _receive(self, name: str, socket: WebSocket, text: str) -> None:
        fault = self._fault("receive", name)
        if fault is not None and fault.kind == "slow_reader":
            await asyncio.sleep(fault.seconds)
        try:
            # Nobody speaks for others.
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
        contact = self.contacts[name]
        if contact.waiting.pop((told.receiver, told.id), None) is None:
            return
        if told.type == ImType.ACK:
            contact.acknowledged += 1
            return
        contact.refused += 1
        if (sender := self.contacts.get(told.receiver)) is not None and sender.socket is not None:
            await sender.socket.send_text(_text(told))

    async def _accept(self, message: ImMessage) -> None:
        self.messages.append(message)
        self.contacts.setdefault(message.receiver, Contact()).waiting[message.sender, message.id] = message
        await self._deliver(message.receiver, message)

    async def _deliver(self, name: str, message: ImMessage) -> None:
        contact = self.contacts[name]
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

    async def _drop(self, contact: Contact, socket: WebSocket) -> None:
        contact.socket = None
        await socket.close(_GOING_AWAY)

    async def _show(self, _: Request) -> Response:
        return JSONResponse(self.shown())

    def shown(self) -> dict[str, JsonValue]:
        contacts: dict[str, JsonValue] = {name: contact.shown() for name, contact in tuple(self.contacts.items())}
        return {"contacts": contacts, "messages": [one.model_dump(mode="json", exclude_none=True) for one in tuple(self.messages)]}

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
