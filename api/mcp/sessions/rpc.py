"""JSON-RPC over HTTP: bodies, answers, and errors with their status."""

import json
from collections.abc import Mapping
from http import HTTPStatus

from mcp.shared.dispatcher import as_request_id
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data, progress_token_from_params
from mcp_types import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    ErrorData,
    JSONRPCMessage,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import JsonValue, ValidationError
from starlette.responses import Response

SESSION_HEADER = "mcp-session-id"
VERSION_HEADER = "mcp-protocol-version"
LAST_EVENT_HEADER = "last-event-id"

LONGEST_ID = 200
"""Characters of a request's id, and of its `progressToken`, when written in JSON."""


class RpcRefusal(Exception):
    """A request that is not a message of MCP, or has an unknown session. `request_id` is that of the message, if it has one."""

    def __init__(self, status: HTTPStatus, code: int, message: str, request_id: str | int | None = None, data: JsonValue = None) -> None:
        super().__init__(message)
        self.status, self.request_id = status, request_id
        self.error = ErrorData(code=code, message=message, data=data)

    def response(self) -> Response:
        return Response(json.dumps(error_message(self.request_id, self.error)), self.status, media_type="application/json")


def not_json(reason: str) -> RpcRefusal:
    return RpcRefusal(HTTPStatus.BAD_REQUEST, PARSE_ERROR, reason)


def no_request(reason: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST, request_id: str | int | None = None) -> RpcRefusal:
    return RpcRefusal(status, INVALID_REQUEST, reason, request_id)


def ending(request_id: str | int | None = None) -> RpcRefusal:
    """The refusal if the service stops before an answer, or its stream, has begun."""
    return RpcRefusal(HTTPStatus.SERVICE_UNAVAILABLE, INTERNAL_ERROR, "The service is stopping; send the request again.", request_id)


def require_one_revision(header: str | None, body: JsonValue) -> None:
    """Raises RpcRefusal for an unknown revision, and for one of 2026-07-28 in the body alone."""
    message: Mapping[str, JsonValue] = body if isinstance(body, dict) else {}
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    said = meta.get(PROTOCOL_VERSION_META_KEY) if isinstance(meta, dict) else None
    request_id = as_request_id(message.get("id"))
    if said in MODERN_PROTOCOL_VERSIONS and (header is None or header in HANDSHAKE_PROTOCOL_VERSIONS):
        told = f"{VERSION_HEADER}: the body is of revision {said}; the header has to say the same."
        raise RpcRefusal(HTTPStatus.BAD_REQUEST, HEADER_MISMATCH, told, request_id)
    if header is not None and header not in {*MODERN_PROTOCOL_VERSIONS, *HANDSHAKE_PROTOCOL_VERSIONS} and said in {None, header}:
        modern, older = ", ".join(MODERN_PROTOCOL_VERSIONS), ", ".join(HANDSHAKE_PROTOCOL_VERSIONS)
        told = f"{VERSION_HEADER}: there is no such revision here. There are {modern}, and with a session (`initialize`) {older}."
        # As in `server/discover`, only those without sessions are named.
        data: JsonValue = {"supported": [*MODERN_PROTOCOL_VERSIONS], "requested": header[:LONGEST_ID]}
        raise RpcRefusal(HTTPStatus.BAD_REQUEST, UNSUPPORTED_PROTOCOL_VERSION, told, request_id, data)


def message_of(body: JsonValue) -> JSONRPCMessage:
    """Raises RpcRefusal."""
    # The SDK would read a request with an invalid id as a notification.
    if isinstance(body, dict) and "method" in body and "id" in body and as_request_id(body["id"]) is None:
        raise no_request("id: a text or an integer is expected.")
    try:
        message = jsonrpc_message_adapter.validate_python(body, by_name=False)
    except ValidationError as error:
        told = "The body is no JSON-RPC message: one request, notification or response is expected, not a batch."
        raise no_request(told) from error
    if isinstance(message, JSONRPCRequest):
        token = progress_token_from_params(message.params)
        for name, said, request_id in (("id", message.id, None), ("params._meta.progressToken", token, message.id)):
            # They are kept in the database and in the ids of events.
            if len(json.dumps(said)) > LONGEST_ID:
                raise no_request(f"{name}: it has more than {LONGEST_ID} characters when written in JSON.", request_id=request_id)
    return message


def result_message(request_id: str | int, result: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {"jsonrpc": "2.0", "id": request_id, "result": dict(result)}


def error_message(request_id: str | int | None, error: ErrorData) -> dict[str, JsonValue]:
    return {"jsonrpc": "2.0", "id": request_id, "error": error.model_dump(mode="json", exclude_none=True)}


def error_of(failure: Exception) -> ErrorData:
    """The error without details that only the log may have."""
    return handler_exception_to_error_data(failure) or ErrorData(code=INTERNAL_ERROR, message="Something went wrong in the service.")
