"""Makes results of calls."""

from datetime import datetime

from pydantic import JsonValue

from toolagent.contracts.calls import ORIGINAL_TYPE, ErrorType, ToolError, ToolResult, ValidationIssue
from toolagent.contracts.tasks import TaskState

__all__ = [
    "IDEMPOTENCY_CONFLICT",
    "KEY_CONFLICT",
    "NOT_ADMITTED",
    "QUARANTINED",
    "TOO_LARGE",
    "failed",
    "key_conflict",
    "original_type_of",
    "reason_of",
    "succeeded",
    "task_state_of",
]

IDEMPOTENCY_CONFLICT = "idempotency_conflict"
"""`details.reason` of a `rejected` call whose key was used for another call."""

NOT_ADMITTED = "not_admitted"
"""`details.reason` of a call that was not admitted, because the database was away. It is not recorded, and may be repeated."""

KEY_CONFLICT = "This idempotency key or call id was used for another call: other tool, version or params. Choose a new one."

QUARANTINED = "quarantined"
"""`details.reason` of a call whose parameters repeatedly ended the tool's process."""

TOO_LARGE = "too_large"
"""`details.reason` of a `validation_error` because of the size of the parameters."""


def failed(
    call_id: str,
    tool_id: str,
    error: ToolError,
    at: datetime,
    *,
    validation_errors: tuple[ValidationIssue, ...] = (),
    execution_time: float = 0.0,
    metadata: dict[str, JsonValue] | None = None,
) -> ToolResult:
    """A result with an error. `execution_time` is in seconds."""
    return ToolResult(
        status="error",
        error=error,
        error_type=error.type,
        validation_errors=validation_errors,
        execution_time=execution_time,
        executed_at=at,
        metadata=metadata or {},
        call_id=call_id,
        tool_id=tool_id,
    )


def key_conflict(call_id: str, tool_id: str, at: datetime, message: str = KEY_CONFLICT) -> ToolResult:
    """The result of a request whose key or id another call has."""
    return failed(call_id, tool_id, ToolError(type=ErrorType.REJECTED, message=message, details={"reason": IDEMPOTENCY_CONFLICT}), at)


def succeeded(
    call_id: str,
    tool_id: str,
    output: JsonValue,
    at: datetime,
    *,
    execution_time: float,
    metadata: dict[str, JsonValue],
    is_reference: bool = False,
) -> ToolResult:
    """A result with the tool's output, or a reference to it. `execution_time` is in seconds."""
    return ToolResult(
        status="success",
        result=output,
        is_reference=is_reference,
        execution_time=execution_time,
        executed_at=at,
        metadata=metadata,
        call_id=call_id,
        tool_id=tool_id,
    )


def reason_of(result: ToolResult) -> str | None:
    """The machine-readable reason, which refines the error type; None without one."""
    details = result.error.details if result.error else None
    reason = details.get("reason") if isinstance(details, dict) else None
    return reason if isinstance(reason, str) else None


def original_type_of(error: ToolError) -> str | None:
    """The tool's own name for the error, if it gave one."""
    original = error.details.get(ORIGINAL_TYPE) if isinstance(error.details, dict) else None
    return original if isinstance(original, str) else None


def task_state_of(result: ToolResult) -> TaskState:
    """The state of the ended task with this result."""
    if result.status == "success":
        return TaskState.COMPLETED
    return TaskState.CANCELLED if result.error_type is ErrorType.CANCELLED else TaskState.FAILED
