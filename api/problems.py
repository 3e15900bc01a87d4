"""What a refused request looks like: `application/problem+json` (RFC 9457)."""

from collections.abc import Mapping
from enum import StrEnum
from http import HTTPStatus

from pydantic import Field, JsonValue
from starlette.responses import Response

from toolagent.contracts.calls import ErrorType
from toolagent.contracts.contract import Contract

__all__ = ["MEDIA_TYPE", "Kind", "Problem", "ProblemField", "ProblemKind", "problem_response"]

MEDIA_TYPE = "application/problem+json"


class ProblemKind(StrEnum):
    """What can be wrong with a request before it is a call."""

    MALFORMED_BODY = "malformed_body"
    MALFORMED_JSON = "malformed_json"
    INVALID_REQUEST = "invalid_request"
    BODY_TOO_LARGE = "body_too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    UNAUTHORIZED = "unauthorized"
    FOREIGN_HOST = "foreign_host"
    FOREIGN_ORIGIN = "foreign_origin"
    ROUTE_NOT_FOUND = "route_not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    TASK_NOT_FOUND = "task_not_found"
    FILE_NOT_FOUND = "file_not_found"
    INTERNAL_ERROR = "internal_error"


Kind = ProblemKind | ErrorType
"""What may stand as `type` of a problem."""


class ProblemField(Contract):
    """One thing that is wrong with a request, and where."""

    field: str = Field(description="A dotted path into the body, or the name of a header; `body` is the whole body.")
    message: str


class Problem(Contract):
    """Why a request was refused. `details` depends on `type`."""

    type: str = Field(description="Names the problem for a program; one of a closed set.")
    title: str = Field(description="Names it for a person.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field("", description="The cause, and the remedy where there is one.")
    errors: tuple[ProblemField, ...] = ()
    details: JsonValue = None


def problem_response(
    kind: Kind,
    status: HTTPStatus,
    detail: str,
    *,
    errors: tuple[ProblemField, ...] = (),
    details: JsonValue = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    title = kind.value.replace("_", " ").capitalize()
    problem = Problem(type=kind.value, title=title, status=status, detail=detail, errors=errors, details=details)
    return Response(problem.model_dump_json(exclude_defaults=True), status, headers, MEDIA_TYPE)
