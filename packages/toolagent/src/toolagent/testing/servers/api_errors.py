"""Errors of the Messages API: `{"type": "error", "error": {"type", "message"}, "request_id"}`."""

from pydantic import JsonValue

from toolagent.testing.servers.scenario import FaultKind

__all__ = ["STATUSES", "STATUS_FAULTS", "ApiError", "error_body"]

STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "overloaded_error": 529,
}

STATUS_FAULTS = {
    FaultKind.RATE_LIMIT: ("rate_limit_error", "This request would exceed your rate limit."),
    FaultKind.OVERLOADED: ("overloaded_error", "Overloaded"),
    FaultKind.SERVER_ERROR: ("api_error", "Internal server error"),
    FaultKind.UNAUTHORIZED: ("authentication_error", "invalid x-api-key"),
    FaultKind.FORBIDDEN: ("permission_error", "Your API key does not have permission to use the specified resource."),
    FaultKind.INVALID_REQUEST: ("invalid_request_error", "The scenario calls this request invalid."),
}
"""The error type and default message of each fault that is an answer with a status."""


class ApiError(Exception):
    """The answer to a request is an error of this type. `retry_after` is in seconds."""

    def __init__(self, error: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.error = error
        self.retry_after = retry_after

    @property
    def status(self) -> int:
        return STATUSES[self.error]


def error_body(error: ApiError, request_id: str) -> dict[str, JsonValue]:
    return {"type": "error", "error": {"type": error.error, "message": str(error)}, "request_id": request_id}
