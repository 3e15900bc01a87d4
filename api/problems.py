"""What a refused request looks like: `application/problem+json` (RFC 9457)."""

from enum import StrEnum

from toolagent.contracts.calls import ErrorType

MEDIA_TYPE = "application/problem+json"


class ProblemKind(StrEnum):
    """What can be wrong with a request before it is a call."""

    MALFORMED_BODY = "malformed_body"
    MALFORMED_JSON = "malformed_json"
    CONFLICTING_HEADERS = "conflicting_headers"
    INVALID_REQUEST = "invalid_request"
    BODY_TOO_LARGE = "body_too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    UNAUTHORIZED = "unauthorized"
    FOREIGN_HOST = "foreign_host"
    FOREIGN_ORIGIN = "foreign_origin"
    ROUTE_NOT_FOUND = "route_not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    HOST_NOT_FOUND = "host_not_found"
    TABLE_NOT_FOUND = "table_not_found"
    TABLE_EXISTS = "table_exists"
    SERVER_NOT_FOUND = "server_not_found"
    SERVER_EXISTS = "server_exists"
    SERVER_NOT_REACHED = "server_not_reached"
    GROUP_NOT_FOUND = "group_not_found"
    SESSION_NOT_FOUND = "session_not_found"
    SESSION_OVER = "session_over"
    NO_LIFECYCLE = "no_lifecycle"
    TOO_MANY_SESSIONS = "too_many_sessions"
    CHAT_NOT_FOUND = "chat_not_found"
    TASK_NOT_FOUND = "task_not_found"
    TASK_ENDED = "task_ended"
    TOO_MANY_MESSAGES = "too_many_messages"
    IDEMPOTENCY_CONFLICT = "idempotency_conflict"
    NO_EARLIER_VERSION = "no_earlier_version"
    NOT_REPAIRABLE = "not_repairable"
    REPAIR_RUNNING = "repair_running"
    FILE_NOT_FOUND = "file_not_found"
    RANGE_NOT_SATISFIABLE = "range_not_satisfiable"
    INTERNAL_ERROR = "internal_error"


Kind = ProblemKind | ErrorType
"""What may stand as `type` of a problem."""
