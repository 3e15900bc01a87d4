"""Streamable HTTP of the revisions with sessions.

This process keeps no state of a session, so any front door can go on with it.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, cast

from mcp.server.lowlevel import Server
from mcp.server.models import InitializationOptions
from mcp.server.streamable_http import check_accept_headers
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import JsonValue
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Send

from api.json_object import JsonObject
from api.mcp.calls.request_state import RequestStates
from api.mcp.calls.underway import Underway
from api.mcp.kept_sessions import ClientSessions
from api.mcp.sessions.events import Event, EventStream
from api.mcp.sessions.requests import SessionRequest, answer_of, connection_of, id_text, question_of
from api.mcp.sessions.resuming import Resuming
from api.mcp.sessions.rpc import LAST_EVENT_HEADER, SESSION_HEADER, ending, message_of, no_request
from api.mcp.visit import Visit, selection_of
from api.ports import CallMessages, McpSessions
from toolagent_service.contracts.mcp import McpSession

_COMMIT_S = 1.0
"""After this time, an answer becomes a stream, with an id by which the client can go on."""

_LARGEST_CLIENT = 65_536


class SessionDoor:
    def __init__(
        self,
        server: Server[Any],
        options: InitializationOptions,
        table: McpSessions,
        sessions: ClientSessions,
        messages: CallMessages,
        underway: Underway,
        resuming: Resuming,
        states: RequestStates,
        stopping: asyncio.Event,
    ) -> None:
        self._server, self._options, self._table, self._sessions = server, options, table, sessions
        self._messages, self._underway, self._resuming, self._stopping = messages, underway, resuming, stopping
        self._states = states
        self._running: dict[tuple[str, str], asyncio.Task[JsonObject]] = {}

    async def post(self, request: Request, body: JsonValue, send: Send) -> None:
        """Raises RpcRefusal, StoreUnavailableError."""
        _require_types(request)
        message = message_of(body)
        if isinstance(message, JSONRPCRequest) and message.method == "initialize":
            await self._opened(request, message, send)
            return
        session = await self._session(request)
        match message:
            case JSONRPCRequest():
                await self._run(request, session, message, send)
            case JSONRPCNotification():
                await self._note(session, message)
                await Response(status_code=202)(request.scope, request.receive, send)
            case JSONRPCResponse() | JSONRPCError():
                await self._answered(session, message)
                await Response(status_code=202)(request.scope, request.receive, send)

    async def get(self, request: Request, send: Send) -> None:
        """Streams notifications; with `Last-Event-ID`, the rest of an earlier stream. Raises RpcRefusal."""
        if not check_accept_headers(request)[1]:
            raise no_request("Accept: text/event-stream is expected.", HTTPStatus.NOT_ACCEPTABLE)
        session = await self._session(request)
        stream = EventStream(request.receive, send, {SESSION_HEADER: session.session_id})
        await self._resuming.run(session, request.headers.get(LAST_EVENT_HEADER), stream, self._stopping)

    async def delete(self, request: Request, send: Send) -> None:
        """Close the session. Its calls go on. Raises RpcRefusal."""
        session = await self._session(request)
        await self._sessions.close(session.session_id)
        await Response(status_code=200)(request.scope, request.receive, send)
        await self._resuming.leave(session)

    async def close(self) -> None:
        """Stop answering requests. Calls go on, and their clients ask for the rest."""
        works = [*self._running.values()]
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)

    async def _opened(self, request: Request, message: JSONRPCRequest, send: Send) -> None:
        if len(str(message.params)) > _LARGEST_CLIENT:
            raise no_request(f"initialize: its params have more than {_LARGEST_CLIENT} characters.")
        blank = McpSession(session_id="", protocol_version=LATEST_HANDSHAKE_VERSION, opened_at=datetime.now(UTC))
        one = SessionRequest(message, blank, Visit(selection_of(request)), EventStream(request.receive, send, {}), request, self._states)
        connection = connection_of(blank)
        answer, headers = await answer_of(self._server, one, connection, self._options), dict[str, str]()
        if "result" in answer:
            client = cast("JsonObject", message.params or {})
            session = await self._sessions.open(connection.protocol_version, client)
            headers[SESSION_HEADER] = session.session_id
        await _json(answer, headers)(request.scope, request.receive, send)

    async def _run(self, request: Request, session: McpSession, message: JSONRPCRequest, send: Send) -> None:
        headers = {SESSION_HEADER: session.session_id}
        stream = EventStream(request.receive, send, headers)
        one = SessionRequest(message, session, visit := Visit(selection_of(request), session), stream, request, self._states)
        visit.ask = one.ask
        own = (session.session_id, id_text(message.id))
        work = asyncio.create_task(answer_of(self._server, one, connection_of(session), self._options), name=f"mcp {message.method}")
        self._running[own] = work
        work.add_done_callback(lambda _: self._running.pop(own, None))
        await asyncio.wait((work,), timeout=_COMMIT_S)
        if work.done() and not stream.has_begun:
            await _json(work.result(), headers)(request.scope, request.receive, send)
            return
        await one.prime()
        async with self._noted(own, visit.call_id):
            # A client that goes away does not cancel its request: it may ask for the rest.
            answer = await stream.follow(work, self._stopping)
            if answer is not None:
                await stream.write(Event(answer))
            elif visit.call_id is None:
                # Without a call, the client cannot ask for the rest.
                work.cancel()
            if not stream.has_begun:
                raise ending(message.id)
            await stream.end()

    @asynccontextmanager
    async def _noted(self, own: tuple[str, str], call_id: str | None) -> AsyncGenerator[None]:
        """Note a call until the block ends, so that any front door can cancel it."""
        if call_id is None:
            yield
            return
        await self._table.begin_request(*own, call_id)
        try:
            yield
        finally:
            await self._table.end_request(*own)

    async def _note(self, session: McpSession, message: JSONRPCNotification) -> None:
        request_id = cancelled_request_id_from_params(message.params) if message.method == "notifications/cancelled" else None
        if request_id is None:
            return
        own = (session.session_id, id_text(request_id))
        if (work := self._running.get(own)) is not None:
            work.cancel()
        elif (call_id := await self._table.call_of(*own)) is not None:
            self._underway.cancel_soon(call_id)

    async def _answered(self, session: McpSession, message: JSONRPCResponse | JSONRPCError) -> None:
        """Takes the answer to a question of a call. Questions of other sessions are ignored."""
        question = question_of(message.id, session, self._states)
        if question is None:
            return
        if isinstance(message, JSONRPCResponse):
            await self._messages.answer(*question, {"result": cast("JsonValue", message.result)})
        else:
            await self._messages.answer(*question, {"error": {"code": message.error.code, "message": message.error.message}})

    async def _session(self, request: Request) -> McpSession:
        session_id = request.headers.get(SESSION_HEADER)
        if not session_id:
            raise no_request(f"{SESSION_HEADER}: begin with `initialize`, whose answer has the id of the session.")
        session = await self._sessions.get(session_id)
        if session is None:
            raise no_request(
                f"{SESSION_HEADER}: there is no session of this id (any more). Begin anew with `initialize`.", HTTPStatus.NOT_FOUND
            )
        return session


def _require_types(request: Request) -> None:
    has_json, has_stream = check_accept_headers(request)
    if not (has_json and has_stream):
        raise no_request("Accept: both application/json and text/event-stream are expected.", HTTPStatus.NOT_ACCEPTABLE)


def _json(message: Mapping[str, JsonValue], headers: Mapping[str, str]) -> Response:
    return Response(to_json(message), 200, headers, "application/json")
