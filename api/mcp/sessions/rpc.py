"""JSON-RPC as it goes over HTTP: bodies in, answers out, errors with their status."""

import json
from collections.abc import Mapping
from http import HTTPStatus

from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data, progress_token_from_params
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCMessage, JSONRPCRequest, jsonrpc_message_adapter
from pydantic import JsonValue, ValidationError
from starlette.responses import Response

SESSION_HEADER = "mcp-session-id"
VERSION_HEADER = "mcp-protocol-version"
LAST_EVENT_HEADER = "last-event-id"

LONGEST_ID = 200
"""Of the id of a request and of its `progressToken`, in characters as they are written in JSON."""


class RpcRefusal(Exception):
    """A request that is no message of MCP, or of no session that there is. `request_id` is that of the message, where it has one."""

    def __init__(self, status: HTTPStatus, code: int, message: str, request_id: str | int | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.request_id = status, code, message, request_id

    def response(self, headers: Mapping[str, str] | None = None) -> Response:
        told = {"jsonrpc": "2.0", "id": self.request_id, "error": {"code": self.code, "message": self.message}}
        return Response(json.dumps(told), self.status, headers, "application/json")


def not_json(reason: str) -> RpcRefusal:
    return RpcRefusal(HTTPStatus.BAD_REQUEST, PARSE_ERROR, reason)


def no_request(reason: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> RpcRefusal:
    return RpcRefusal(status, INVALID_REQUEST, reason)


def ending(request_id: str | int | None = None) -> RpcRefusal:
    """The service stops before there is an answer, and a stream has not begun."""
    return RpcRefusal(HTTPStatus.SERVICE_UNAVAILABLE, INTERNAL_ERROR, "The service is stopping; send the request again.", request_id)


def message_of(body: JsonValue) -> JSONRPCMessage:
    """Raises RpcRefusal."""
    try:
        message = jsonrpc_message_adapter.validate_python(body, by_name=False)
    except ValidationError as error:
        told = "The body is no JSON-RPC message: one request, notification or response is expected, not a batch."
        raise no_request(told) from error
    if isinstance(message, JSONRPCRequest):
        for name, said in (("id", message.id), ("params._meta.progressToken", progress_token_from_params(message.params))):
            # So the database and the ids of events have it.
            if len(json.dumps(said)) > LONGEST_ID:
                raise no_request(f"{name}: it has more than {LONGEST_ID} characters when written in JSON.")
    return message


def result_message(request_id: str | int, result: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {"jsonrpc": "2.0", "id": request_id, "result": dict(result)}


def error_message(request_id: str | int, error: ErrorData) -> dict[str, JsonValue]:
    return {"jsonrpc": "2.0", "id": request_id, "error": error.model_dump(mode="json", exclude_none=True)}


def error_of(failure: Exception) -> ErrorData:
    """What may be told of it; the log has the rest."""
    return handler_exception_to_error_data(failure) or ErrorData(code=INTERNAL_ERROR, message="Something went wrong in the service.")
