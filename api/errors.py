"""The HTTP status of each error, and the handlers that answer with it.

Refusal                  refused by the front door
HTTPException            refused by FastAPI or Starlette: no such route, wrong method, a body that cannot be read
RequestValidationError   a body or header of the wrong form
ControlFailedError       a tool could not be started or stopped
MakingUnreachableError   Temporal cannot be asked about a task that makes or repairs a tool
ToolAgentError           a call without an ordinary end; answered with its ToolResult
TableRefusedError, TableNotReachedError, TableExistsError, NoSuchTableError (external tables)
McpServerRefusedError, McpServerNotReachedError, McpServerNotStartedError, McpServersBusyError, McpServerExistsError, NoSuchMcpServerError
FileTooLargeError, ImUseRefusedError, ImKeyUsedError, StoreUnavailableError (the database, or where files are kept)
Exception                a fault of the service: it is logged, and the caller gets no details
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import TypeVar, cast, get_args

import structlog
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, JsonValue
from pydantic_core import ErrorDetails
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match

from api.forms import message_of
from api.problems import MEDIA_TYPE, Kind, ProblemKind
from toolagent.client.failures import ControlFailedError, MakingUnreachableError, ToolAgentError
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent.contracts.http import Problem, ProblemField
from toolagent.core.calls.results import IDEMPOTENCY_CONFLICT, QUARANTINED, TOO_LARGE, reason_of
from toolagent.core.failures import (
    ContentDamagedError,
    ContentUnavailableError,
    FileTooLargeError,
    ImKeyUsedError,
    ImUseRefusedError,
    McpServerExistsError,
    McpServerNotReachedError,
    McpServerNotStartedError,
    McpServerRefusedError,
    McpServersBusyError,
    NoSuchMcpServerError,
    NoSuchTableError,
    StoreFullError,
    StoreUnavailableError,
    StoreUnwritableError,
    TableExistsError,
    TableNotReachedError,
    TableRefusedError,
)
from toolagent.core.suggestions import nearest

STATUS: Mapping[Kind, HTTPStatus] = {
    ErrorType.TOOL_NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorType.VALIDATION_ERROR: HTTPStatus.UNPROCESSABLE_ENTITY,
    ErrorType.PERMISSION_DENIED: HTTPStatus.FORBIDDEN,
    ErrorType.SECURITY_ERROR: HTTPStatus.FORBIDDEN,
    ErrorType.BUDGET_EXCEEDED: HTTPStatus.PAYMENT_REQUIRED,
    ErrorType.REJECTED: HTTPStatus.TOO_MANY_REQUESTS,
    ErrorType.CANCELLED: HTTPStatus.CONFLICT,
    ErrorType.TIMEOUT: HTTPStatus.GATEWAY_TIMEOUT,
    ErrorType.EXECUTION_ERROR: HTTPStatus.BAD_GATEWAY,
    ErrorType.DEPENDENCY_ERROR: HTTPStatus.BAD_GATEWAY,
    ErrorType.OUTPUT_VALIDATION_ERROR: HTTPStatus.BAD_GATEWAY,
    ErrorType.EXECUTOR_NOT_FOUND: HTTPStatus.NOT_IMPLEMENTED,
    ErrorType.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
} | {kind: kind.status for kind in ProblemKind}
"""One HTTP status for each error type and each kind of problem."""

REASON_STATUS: Mapping[tuple[ErrorType, str], HTTPStatus] = {
    (ErrorType.VALIDATION_ERROR, TOO_LARGE): HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    (ErrorType.REJECTED, IDEMPOTENCY_CONFLICT): HTTPStatus.CONFLICT,
    (ErrorType.REJECTED, QUARANTINED): HTTPStatus.CONFLICT,
}
"""Statuses of error types that depend on the reason in their details."""

_KINDS: Mapping[type[Exception], Kind] = {
    FileTooLargeError: ProblemKind.BODY_TOO_LARGE,
    TableNotReachedError: ProblemKind.SERVER_NOT_REACHED,
    NoSuchTableError: ProblemKind.TABLE_NOT_FOUND,
    NoSuchMcpServerError: ProblemKind.SERVER_NOT_FOUND,
    McpServerNotReachedError: ProblemKind.SERVER_NOT_REACHED,
    McpServerNotStartedError: ErrorType.UNAVAILABLE,
}
"""Errors whose text is the detail of the problem."""

_FIELDS: Mapping[type[Exception], tuple[str, Kind]] = {
    ImUseRefusedError: ("arguments", ProblemKind.INVALID_REQUEST),
    ImKeyUsedError: ("Idempotency-Key", ProblemKind.IDEMPOTENCY_CONFLICT),
    TableExistsError: ("source", ProblemKind.TABLE_EXISTS),
    McpServerExistsError: ("name", ProblemKind.SERVER_EXISTS),
}
"""Errors about one field of the request."""

_RETRY: Mapping[str, str] = {"Retry-After": "1"}
_MAX_LISTED = 50
_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
_KINDS_OF_STATUS = {404: ProblemKind.ROUTE_NOT_FOUND, 405: ProblemKind.METHOD_NOT_ALLOWED, 413: ProblemKind.BODY_TOO_LARGE}

ErrorT = TypeVar("ErrorT", bound=Exception)
_log = structlog.stdlib.get_logger(__name__)


class Refusal(Exception):
    """The request is answered with a problem of this kind."""

    def __init__(
        self,
        kind: Kind,
        detail: str,
        *,
        errors: tuple[ProblemField, ...] = (),
        details: JsonValue = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind: Kind = kind
        self.detail, self.errors, self.details, self.headers = detail, errors, details, headers


def bad_field(name: str, message: str, kind: Kind = ProblemKind.INVALID_REQUEST) -> Refusal:
    """The refusal of a request with one wrong field."""
    return Refusal(kind, f"{name}: {message}", errors=(ProblemField(field=name, message=message),))


def status_of(result: ToolResult) -> HTTPStatus:
    """The HTTP status of an ended call."""
    if result.error is None:
        return HTTPStatus.OK
    return REASON_STATUS.get((result.error.type, reason_of(result) or ""), STATUS[result.error.type])


def json_response(answer: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(answer.model_dump_json(), status, headers, "application/json")


def result_response(result: ToolResult, shown: BaseModel | None = None) -> Response:
    """The answer for an ended call. `shown` replaces the result in the body."""
    return json_response(shown or result, status_of(result), {"X-Call-Id": result.call_id, **_retry_headers(result.error)})


def refusal_response(refusal: Refusal, status: HTTPStatus | None = None) -> Response:
    """`status` replaces the status of the refusal's kind."""
    kind, status = refusal.kind.value, status or STATUS[refusal.kind]
    title = kind.replace("_", " ").capitalize()
    problem = Problem(type=kind, title=title, status=status, detail=refusal.detail, errors=refusal.errors, details=refusal.details)
    return Response(problem.model_dump_json(exclude_defaults=True), status, refusal.headers, MEDIA_TYPE)


def unanswered(error: MakingUnreachableError, remedy: str, **details: JsonValue) -> Refusal:
    """The refusal when it is not known whether Temporal received the request."""
    return Refusal(ErrorType.UNAVAILABLE, f"{error} {remedy}", details=details or None, headers=_RETRY)


def handle_errors(app: Starlette) -> None:
    """Register the handlers of all errors."""
    _handle(app, Refusal, lambda refusal: refusal)
    app.add_exception_handler(HTTPException, _http_problem)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(ToolAgentError, _call_result)
    _handle(app, ControlFailedError, lambda error: _control_refusal(error.error))
    _handle(app, MakingUnreachableError, lambda error: unanswered(error, "Ask again."))
    for refused in (TableRefusedError, McpServerRefusedError):
        _handle(app, refused, _refused_field)
    for known, kind in _KINDS.items():
        _handle(app, known, partial(_refusal, kind))
    for known, (name, kind) in _FIELDS.items():
        _handle(app, known, partial(_field_refusal, name, kind))
    _handle(app, McpServersBusyError, lambda error: Refusal(ErrorType.UNAVAILABLE, str(error), headers={"Retry-After": "30"}))
    _handle(app, StoreUnavailableError, _store_refusal)
    # The client is gone and reads no answer. Without this handler the error would be logged as a failure of the service.
    _handle(app, ClientDisconnect, lambda _: Refusal(ProblemKind.MALFORMED_BODY, "The client went away."))
    app.add_exception_handler(Exception, _unexpected)


def _handle(app: Starlette, kind: type[ErrorT], refuse: Callable[[ErrorT], Refusal]) -> None:
    async def handler(_request: Request, error: Exception) -> Response:
        return refusal_response(refuse(cast("ErrorT", error)))

    as_declared: Callable[[Request, Exception], Awaitable[Response]] = handler
    app.add_exception_handler(kind, as_declared)


def _refusal(kind: Kind, error: Exception) -> Refusal:
    return Refusal(kind, str(error))


def _field_refusal(name: str, kind: Kind, error: Exception) -> Refusal:
    return bad_field(name, str(error), kind)


async def _call_result(_request: Request, error: Exception) -> Response:
    return result_response(cast("ToolAgentError", error).result)


_FORM = "A form has one part, `file`, which is a file: `curl -F file=@note.txt`."
"""Only one route takes a form. Without the `@` curl sends a field."""


async def _http_problem(request: Request, refused: Exception) -> Response:
    error = cast("HTTPException", refused)
    status = HTTPStatus(error.status_code)
    kind = _KINDS_OF_STATUS.get(status, ProblemKind.MALFORMED_BODY)
    detail, headers = error.detail, error.headers
    if kind is ProblemKind.ROUTE_NOT_FOUND:
        detail = "There is no such path; /docs lists what there is."
    elif kind is ProblemKind.METHOD_NOT_ALLOWED:
        # A path may have several routes, and the error names the methods of the first.
        allowed = ", ".join(_methods(request))
        detail, headers = f"This path takes {allowed}, not {request.method}.", {"Allow": allowed}
    elif status == HTTPStatus.BAD_REQUEST:
        detail = f"{detail.rstrip('.')}. {_FORM}"
    return refusal_response(Refusal(kind, detail, headers=headers), status)


def _methods(request: Request) -> list[str]:
    """The methods of all routes of the path."""
    routes = cast("Starlette", request.app).routes
    asked = ((method, {**request.scope, "method": method}) for method in _METHODS)
    return [method for method, scope in asked if any(route.matches(scope)[0] is Match.FULL for route in routes)]


async def _invalid_request(request: Request, error: Exception) -> Response:
    found = cast("list[ErrorDetails]", cast("RequestValidationError", error).errors())
    known = _fields_of_body(request)
    errors = tuple(ProblemField(field=_field(one["loc"]), message=message_of(one) + _hint(one, known)) for one in found[:_MAX_LISTED])
    more = f" (and {len(found) - _MAX_LISTED} more)" if len(found) > _MAX_LISTED else ""
    listed = "; ".join(f"{one.field}: {one.message}" for one in errors[:3])
    return refusal_response(Refusal(ProblemKind.INVALID_REQUEST, f"The request is not of the right form: {listed}{more}", errors=errors))


def _fields_of_body(request: Request) -> tuple[str, ...]:
    route = request.scope.get("route")
    body = route.body_field if isinstance(route, APIRoute) else None
    form = body.field_info.annotation if body else None
    models = (one for one in (form, *get_args(form)) if isinstance(one, type) and issubclass(one, BaseModel))
    return tuple(name for model in models for name in model.model_fields)


def _hint(error: ErrorDetails, known: Sequence[str]) -> str:
    """The suggestion for an unknown field at the top of the body."""
    place, *path = error["loc"]
    if error["type"] != "extra_forbidden" or place != "body" or len(path) != 1 or not known:
        return ""
    near = nearest(str(path[0])[:_MAX_LISTED], known, 1)
    return f" Did you mean {near[0]}?" if near else f" There are: {', '.join(known)}."


def _field(location: tuple[int | str, ...]) -> str:
    """The path of the wrong field. Fields outside of the body, but for headers, are named the same way."""
    place, *path = location
    if not path:
        return str(place)
    return str(path[0]) if place == "header" else ".".join(str(part) or "''" for part in path)[:200]


def _refused_field(error: TableRefusedError | McpServerRefusedError) -> Refusal:
    return bad_field(error.field, str(error), ErrorType.SECURITY_ERROR if error.is_private else ProblemKind.INVALID_REQUEST)


def _control_refusal(error: ToolError) -> Refusal:
    return Refusal(error.type, error.message, details=error.details, headers=_retry_headers(error))


def _store_refusal(error: StoreUnavailableError) -> Refusal:
    _log.error("store_unavailable", reason=str(error))
    match error:
        case StoreFullError():
            told, cause = "There is no room for more files; ask again when the operator has made some.", "store_full"
        case ContentDamagedError():
            # No Retry-After: the operator has to act first.
            return Refusal(ErrorType.UNAVAILABLE, str(error), details={"cause": "content_damaged", "file_id": error.file_id})
        case ContentUnavailableError():
            told, cause = "The store of files does not answer now; ask again.", "content_store"
        case StoreUnwritableError():
            told, cause = f"{error.told} Ask again when the operator has seen to it.", error.cause
        case _:
            told, cause = "The database does not answer now; ask again.", "database"
    return Refusal(ErrorType.UNAVAILABLE, told, details={"cause": cause}, headers=_RETRY)


def _retry_headers(error: ToolError | None) -> Mapping[str, str]:
    return _RETRY if error is not None and error.type is ErrorType.UNAVAILABLE else {}


async def _unexpected(request: Request, error: Exception) -> Response:
    _log.error("request_failed", method=request.method, path=request.url.path, exc_info=error)
    return refusal_response(Refusal(ProblemKind.INTERNAL_ERROR, "Something went wrong in the service; its log says what."))
