"""One request of a session, run by the SDK's handlers.

Its answer is JSON, or a stream if there are messages before it.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import structlog
from mcp import MCPError
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.models import InitializationOptions
from mcp.server.runner import ServerRunner
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import ErrorData, JSONRPCRequest
from pydantic import ValidationError
from starlette.requests import Request

from api.json_object import JsonObject
from api.mcp.calls.following import request_of
from api.mcp.calls.request_state import RequestStates
from api.mcp.sessions.events import CallPoint, Event, EventStream
from api.mcp.sessions.rpc import error_message, error_of, result_message
from api.mcp.visit import Visit, put_visit
from toolagent.contracts.call_messages import CallMessage
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.contracts.mcp import McpSession

_CANCELLED = ErrorData(code=-32_800, message="Request cancelled")
"""The answer to a cancelled request: in the older revision, an answer ends each stream."""

_log = structlog.stdlib.get_logger(__name__)


@dataclass(slots=True)
class SessionRequest:
    """The SDK's `DispatchContext` of a request. Messages of handlers go to its stream."""

    message: JSONRPCRequest
    session: McpSession
    visit: Visit
    stream: EventStream
    request: Request
    states: RequestStates
    can_send_request: bool = field(default=False, init=False)
    cancel_requested: anyio.Event = field(default_factory=anyio.Event, init=False)

    @property
    def request_id(self) -> str | int:
        return self.message.id

    @property
    def transport(self) -> TransportContext:
        return TransportContext(kind="streamable-http", can_send_request=False, headers=self.request.headers)

    @property
    def message_metadata(self) -> ServerMessageMetadata:
        return ServerMessageMetadata(request_context=self.request)

    @property
    def point(self) -> CallPoint | None:
        """The position of the client in the messages of its call; None before there is a call."""
        if self.visit.call_id is None:
            return None
        token = progress_token_from_params(self.message.params)
        return CallPoint(self.session.session_id, self.visit.call_id, self.message.id, token, self.visit.position)

    @property
    def _event_id(self) -> str | None:
        return self.point.event_id(self.states) if self.point else None

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,  # noqa: ARG002 - as the SDK calls it
        opts: CallOptions | None = None,  # noqa: ARG002 - as the SDK calls it
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,  # noqa: ARG002 - as the SDK calls it
    ) -> None:
        await self.prime()
        told: JsonObject = {"jsonrpc": "2.0", "method": method, "params": dict(params or {})}
        await self.stream.write(Event(told, self._event_id))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        token = progress_token_from_params(self.message.params)
        if token is not None:
            said = {"progressToken": token, "progress": progress, "total": total, "message": message}
            await self.notify("notifications/progress", {key: value for key, value in said.items() if value is not None})

    async def ask(self, question: CallMessage) -> bool:
        await self.prime()
        # A client that goes on after this event has got the question.
        self.visit.position = max(self.visit.position, question.position)
        await self.stream.write(Event(question_message(question, self.session, self.states), self._event_id))
        return True

    async def prime(self) -> None:
        """Send an id before the first message, so that a client whose connection breaks can go on."""
        if not self.stream.has_begun and (point := self.point) is not None:
            await self.stream.write(Event(None, point.at(0).event_id(self.states)))


def question_message(question: CallMessage, session: McpSession, states: RequestStates) -> JsonObject:
    """A question as a request to the client. Its id seals the call and the question for this session."""
    asked_as = states.sealed_as("question", session.session_id, question.call_id, question.position)
    return {"jsonrpc": "2.0", "id": asked_as, **request_of(question)}


def question_of(response_id: str | int | None, session: McpSession, states: RequestStates) -> tuple[str, int] | None:
    """The call and the position of the question of a response; None if it was not asked in this session."""
    parts = states.opened_as("question", str(response_id))
    if parts is None or parts[0] != session.session_id:
        return None
    _, call_id, position = parts
    return call_id, position


def connection_of(session: McpSession) -> Connection:
    """The SDK's connection of a client, created for each request."""
    client = session.client
    return Connection.from_envelope(session.protocol_version, client.get("clientInfo"), client.get("capabilities"))


async def answer_of(server: Server[Any], one: SessionRequest, connection: Connection, options: InitializationOptions) -> JsonObject:
    """The JSON-RPC message that answers a request."""
    put_visit(one.request.scope, one.visit)
    runner = ServerRunner(server, connection, {}, init_options=options)
    try:
        return result_message(one.message.id, await runner.on_request(one, one.message.method, one.message.params))
    except asyncio.CancelledError:
        return error_message(one.message.id, _CANCELLED)
    except StoreUnavailableError as error:
        _log.warning("mcp_request_not_answered", method=one.message.method, reason=str(error))
        return error_message(one.message.id, ErrorData(code=-32_603, message="The database does not answer now; ask again."))
    except (MCPError, ValidationError) as error:
        return error_message(one.message.id, error_of(error))
    except Exception as error:  # noqa: BLE001 - our faults are logged, and answered like other errors
        _log.exception("mcp_request_failed", method=one.message.method)
        return error_message(one.message.id, error_of(error))


def id_text(request_id: str | int) -> str:
    """The id as the database has it. 1 and "1" are two ids."""
    return json.dumps(request_id)
