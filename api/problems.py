"""The kinds of problems, answered as `application/problem+json` (RFC 9457)."""

from enum import StrEnum
from http import HTTPStatus
from typing import Self

from toolagent.contracts.calls import ErrorType

MEDIA_TYPE = "application/problem+json"


class ProblemKind(StrEnum):
    """What can be wrong with a request before it is a call, with the status of the answer."""

    status: HTTPStatus

    def __new__(cls, value: str, status: HTTPStatus) -> Self:
        kind = str.__new__(cls, value)
        kind._value_, kind.status = value, status
        return kind

    MALFORMED_BODY = "malformed_body", HTTPStatus.BAD_REQUEST
    MALFORMED_JSON = "malformed_json", HTTPStatus.BAD_REQUEST
    CONFLICTING_HEADERS = "conflicting_headers", HTTPStatus.BAD_REQUEST
    INVALID_REQUEST = "invalid_request", HTTPStatus.UNPROCESSABLE_ENTITY
    BODY_TOO_LARGE = "body_too_large", HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type", HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    UNAUTHORIZED = "unauthorized", HTTPStatus.UNAUTHORIZED
    FOREIGN_HOST = "foreign_host", HTTPStatus.MISDIRECTED_REQUEST
    FOREIGN_ORIGIN = "foreign_origin", HTTPStatus.FORBIDDEN
    ROUTE_NOT_FOUND = "route_not_found", HTTPStatus.NOT_FOUND
    METHOD_NOT_ALLOWED = "method_not_allowed", HTTPStatus.METHOD_NOT_ALLOWED
    HOST_NOT_FOUND = "host_not_found", HTTPStatus.NOT_FOUND
    TABLE_NOT_FOUND = "table_not_found", HTTPStatus.NOT_FOUND
    TABLE_EXISTS = "table_exists", HTTPStatus.CONFLICT
    SERVER_NOT_FOUND = "server_not_found", HTTPStatus.NOT_FOUND
    SERVER_EXISTS = "server_exists", HTTPStatus.CONFLICT
    SERVER_NOT_REACHED = "server_not_reached", HTTPStatus.BAD_GATEWAY
    GROUP_NOT_FOUND = "group_not_found", HTTPStatus.NOT_FOUND
    SESSION_NOT_FOUND = "session_not_found", HTTPStatus.NOT_FOUND
    SESSION_OVER = "session_over", HTTPStatus.CONFLICT
    NO_LIFECYCLE = "no_lifecycle", HTTPStatus.CONFLICT
    TOO_MANY_SESSIONS = "too_many_sessions", HTTPStatus.TOO_MANY_REQUESTS
    CHAT_NOT_FOUND = "chat_not_found", HTTPStatus.NOT_FOUND
    TASK_NOT_FOUND = "task_not_found", HTTPStatus.NOT_FOUND
    TASK_ENDED = "task_ended", HTTPStatus.CONFLICT
    TOO_MANY_MESSAGES = "too_many_messages", HTTPStatus.CONFLICT
    IDEMPOTENCY_CONFLICT = "idempotency_conflict", HTTPStatus.CONFLICT
    NO_EARLIER_VERSION = "no_earlier_version", HTTPStatus.CONFLICT
    NOT_REPAIRABLE = "not_repairable", HTTPStatus.CONFLICT
    REPAIR_RUNNING = "repair_running", HTTPStatus.CONFLICT
    FILE_NOT_FOUND = "file_not_found", HTTPStatus.NOT_FOUND
    RANGE_NOT_SATISFIABLE = "range_not_satisfiable", HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
    INTERNAL_ERROR = "internal_error", HTTPStatus.INTERNAL_SERVER_ERROR


Kind = ProblemKind | ErrorType
"""The `type` of a problem."""
