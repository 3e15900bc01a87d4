"""MCP over stdin and stdout for clients without HTTP: passes each message to the MCP server of a running service."""

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import cast

import httpx
from pydantic import JsonValue

__all__ = ["McpBridge"]

_META = "io.modelcontextprotocol/protocolVersion"
_ACCEPTED = "application/json, text/event-stream"
_STREAM = "text/event-stream"
_SESSION = "Mcp-Session-Id"
_UNREACHABLE = -32_000
_NO_JSON = -32_700
_INVALID = -32_600
_SHOWN_BYTES = 500
_AGAIN_S = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
"""Pauses before each attempt to resume a broken stream. The service may restart meanwhile."""

_LISTENS_AGAIN_S = _AGAIN_S[2]
"""The pause before the first attempt to receive notifications again. After refusals, the pauses get longer."""

Message = dict[str, JsonValue]


@dataclass(slots=True)
class _Place:
    """How far the answer to one request has been read. The service resumes it after `last_event_id`."""

    request: Message = field(default_factory=dict[str, JsonValue])
    last_event_id: str | None = None
    is_answered: bool = False

    @property
    def request_id(self) -> JsonValue:
        return self.request.get("id")


@dataclass(slots=True)
class McpBridge:
    """`http` is a client of the service, with its key; `path` is that of its MCP server. `write` gets each message for the client."""

    http: httpx.AsyncClient
    write: Callable[[str], Awaitable[None]]
    path: str = "/mcp"
    _session: dict[str, str] = field(default_factory=dict[str, str])
    _running: dict[str, "asyncio.Task[None]"] = field(default_factory=dict[str, "asyncio.Task[None]"])
    _hearing: "asyncio.Task[None] | None" = None
    _opening: Message | None = None
    _level: Message | None = None
    _subscribed: dict[str, Message] = field(default_factory=dict[str, Message])
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self, lines: AsyncIterator[str]) -> None:
        """Run until all lines are read and all requests are answered. If cancelled, calls of the older revision continue."""
        try:
            async for line in lines:
                if line.strip():
                    await self._take(line)
            await asyncio.gather(*self._running.values(), return_exceptions=True)
        finally:
            await self._close()

    async def _take(self, line: str) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            await self._refuse(None, _NO_JSON, "The line is no JSON-RPC message.")
            return
        one = cast("Message", message)
        if not _is_json(one):
            request_id = one.get("id")
            told = "The message is no JSON: it holds NaN, an infinite number, half a surrogate pair, or values in values without end."
            await self._refuse(request_id if isinstance(request_id, str | int) and _is_json(request_id) else None, _NO_JSON, told)
            return
        method, request_id = one.get("method"), one.get("id")
        if method == "initialize":
            # Later messages need its session.
            self._opening, self._level, self._subscribed = one, None, {}
            await self._ask(one)
        elif method is not None and request_id is not None:
            task = asyncio.create_task(self._ask(one))
            self._running[json.dumps(request_id)] = task
            task.add_done_callback(lambda _: self._running.pop(json.dumps(request_id), None))
        elif method == "notifications/cancelled" and not self._session:
            # The newer revision cancels a request by closing its connection.
            if (task := self._running.get(json.dumps(_params(one).get("requestId")))) is not None:
                task.cancel()
        else:
            await self._tell(one)

    async def _tell(self, message: Message) -> None:
        """Send a message without an answer."""
        try:
            used = self._session.get(_SESSION)
            answer = await self.http.post(self.path, json=message, headers=self._headers(message))
            if answer.status_code == HTTPStatus.NOT_FOUND and await self._opened_anew(used):
                await self.http.post(self.path, json=message, headers=self._headers(message))
        except httpx.TransportError as error:
            _complain(f"The service was not reached: {error}")
        except ValueError as error:
            _complain(f"A message cannot be passed on: {error}")
        if message.get("method") == "notifications/initialized" and self._hearing is None:
            self._hearing = asyncio.create_task(self._hear())

    async def _ask(self, message: Message) -> None:
        place, used = _Place(message), self._session.get(_SESSION)
        try:
            async with self.http.stream("POST", self.path, json=message, headers=self._headers(message)) as answer:
                is_lost = answer.status_code == HTTPStatus.NOT_FOUND and used is not None
                if _SESSION in answer.headers and message.get("method") == "initialize":
                    self._session[_SESSION] = answer.headers[_SESSION]
                if not is_lost:
                    await self._pass(answer, place)
            if is_lost:
                await self._opened_anew(used)
                async with self.http.stream("POST", self.path, json=message, headers=self._headers(message)) as answer:
                    await self._pass(answer, place)
        except (ValueError, httpx.LocalProtocolError) as error:
            # A header cannot hold a value of the message, or the answer of the service is not JSON.
            await self._refuse(place.request_id, _INVALID, f"The message cannot be passed on: {error}")
            return
        except httpx.TransportError as error:
            if place.last_event_id is None:
                await self._refuse(place.request_id, _UNREACHABLE, f"The service was not reached: {error}")
                return
        if not place.is_answered:
            await self._go_on(place)

    async def _opened_anew(self, lost: str | None) -> bool:
        """The service has lost the session: begin another like the client did, with its log level and subscriptions.

        False if there was no session.
        """
        async with self._turn:
            if lost is None or self._opening is None:
                return False
            if self._session.get(_SESSION) != lost:
                return True
            answer = await self.http.post(self.path, json=self._opening, headers={"Accept": _ACCEPTED})
            if _SESSION not in answer.headers:
                return False
            session = {_SESSION: answer.headers[_SESSION], "MCP-Protocol-Version": answer.json()["result"]["protocolVersion"]}
            told: Message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            for one in (told, *((self._level,) if self._level else ()), *self._subscribed.values()):
                await self.http.post(self.path, json=one, headers={"Accept": _ACCEPTED, **session})
            # If a message fails, the new session is not used, and the next request finds the session lost again.
            self._session = session
            return True

    async def _go_on(self, place: _Place) -> None:
        pauses = iter(_AGAIN_S if place.last_event_id is not None else ())
        while (pause_s := next(pauses, None)) is not None:
            before = place.last_event_id
            await asyncio.sleep(pause_s)
            headers = {**self._headers({}), "Accept": _STREAM, "Last-Event-ID": place.last_event_id or ""}
            try:
                async with self.http.stream("GET", self.path, headers=headers) as answer:
                    await self._pass(answer, place)
            except (ValueError, httpx.TransportError):
                pass
            if place.is_answered:
                return
            if place.last_event_id != before:
                # It made progress, so the next break counts as a new one.
                pauses = iter(_AGAIN_S)
        await self._refuse(place.request_id, _UNREACHABLE, "The connection to the service broke off before it had answered.")

    async def _hear(self) -> None:
        """Receive messages that are no answers."""
        place, pause_s = _Place(), _LISTENS_AGAIN_S
        while True:
            used = self._session.get(_SESSION)
            resumed = {"Last-Event-ID": place.last_event_id} if place.last_event_id else {}
            try:
                async with self.http.stream("GET", self.path, headers={**self._headers({}), "Accept": _STREAM, **resumed}) as answer:
                    is_lost = answer.status_code == HTTPStatus.NOT_FOUND
                    if answer.is_success:
                        pause_s = _LISTENS_AGAIN_S
                        await self._pass(answer, place)
                    elif not is_lost:
                        # This error belongs to no request of the client.
                        said = (await answer.aread())[:_SHOWN_BYTES].decode(errors="replace")
                        _complain(f"The service does not send its notifications: {answer.status_code} {said}")
                        pause_s = min(2 * pause_s, _AGAIN_S[-1])
                if is_lost:
                    place.last_event_id = None
                    if not await self._opened_anew(used):
                        return
            except httpx.TransportError:
                pass
            except ValueError as error:
                _complain(f"A message of the service is no JSON: {error}")
            await asyncio.sleep(pause_s)

    async def _pass(self, answer: httpx.Response, place: _Place) -> None:
        if answer.headers.get("content-type", "").startswith(_STREAM):
            async for line in answer.aiter_lines():
                if line.startswith("id: "):
                    place.last_event_id = line.removeprefix("id: ")
                elif line.startswith("data: {"):
                    await self._give(json.loads(line.removeprefix("data: ")), place)
            return
        body = await answer.aread()
        try:
            parsed = json.loads(body) if body else None
        except ValueError:
            parsed = None
        message = cast("Message", parsed) if isinstance(parsed, dict) else {}
        if message.get("jsonrpc") == "2.0":
            await self._give({**message, "id": place.request_id}, place)
        elif answer.is_error and place.request_id is not None:
            place.is_answered = True
            told = message.get("detail")
            await self._refuse(place.request_id, _UNREACHABLE, f"{answer.status_code}: {told or answer.reason_phrase}")

    async def _give(self, message: Message, place: _Place) -> None:
        if "method" not in message:
            place.is_answered = True
            result = message.get("result")
            if isinstance(result, dict):
                self._note(place.request)
            if isinstance(result, dict) and isinstance(version := result.get("protocolVersion"), str) and self._session:
                self._session.setdefault("MCP-Protocol-Version", version)
        await self.write(json.dumps(message, ensure_ascii=False, separators=(",", ":")))

    def _note(self, request: Message) -> None:
        """Remember accepted settings, which a new session would lack."""
        uri = str(_params(request).get("uri"))
        match request.get("method"):
            case "logging/setLevel":
                self._level = request
            case "resources/subscribe":
                self._subscribed[uri] = request
            case "resources/unsubscribe":
                self._subscribed.pop(uri, None)
            case _:
                pass

    async def _refuse(self, request_id: JsonValue, code: int, message: str) -> None:
        told: Message = {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}
        await self.write(json.dumps(told, ensure_ascii=False))

    def _headers(self, message: Message) -> dict[str, str]:
        """The headers of a message. The newer revision repeats parts of the message in them."""
        params, base = _params(message), {"Accept": _ACCEPTED, **self._session}
        meta = params.get("_meta")
        version = meta.get(_META) if isinstance(meta, dict) else None
        if not isinstance(version, str):
            return base
        named = params.get("name") or params.get("uri") or params.get("taskId")
        name = {"Mcp-Name": _in_header(named)} if isinstance(named, str) else {}
        return {**base, "MCP-Protocol-Version": version, "Mcp-Method": str(message.get("method")), **name}

    async def _close(self) -> None:
        for task in (*self._running.values(), *((self._hearing,) if self._hearing else ())):
            task.cancel()
        if self._session:
            with suppress(httpx.TransportError):
                await self.http.delete(self.path, headers=self._session)


def _is_json(value: JsonValue) -> bool:
    """Whether the value is strict JSON. Python reads more than that."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def _complain(said: str) -> None:
    """On stderr: stdout is for messages only."""
    sys.stderr.write(f"{said}\n")


def _params(message: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    params = message.get("params")
    return params if isinstance(params, dict) else {}


def _in_header(text: str) -> str:
    """The text as a value of a header: unchanged if possible, else in the encoded form of the protocol."""
    is_plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?")
    return text if is_plain else f"=?base64?{base64.b64encode(text.encode()).decode()}?="
