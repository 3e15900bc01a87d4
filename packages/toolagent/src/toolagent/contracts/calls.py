"""Calls of tools, and their results."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue

from toolagent.contracts.call_messages import Listener
from toolagent.contracts.callbacks import CallbackUrl
from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId, UpToADay

__all__ = [
    "ORIGINAL_TYPE",
    "CallMode",
    "Caller",
    "ErrorType",
    "IdempotencyKey",
    "ToolCall",
    "ToolError",
    "ToolResult",
    "ValidationIssue",
]

ORIGINAL_TYPE = "original_type"
"""In `details` of an error: the tool's own name for it, such as a script's `ScriptError`."""

IdempotencyKey = Annotated[str, Field(min_length=1, max_length=255)]


class ErrorType(StrEnum):
    """The kinds of errors of calls: a closed set."""

    TOOL_NOT_FOUND = "tool_not_found"
    VALIDATION_ERROR = "validation_error"
    PERMISSION_DENIED = "permission_denied"
    SECURITY_ERROR = "security_error"
    BUDGET_EXCEEDED = "budget_exceeded"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    EXECUTION_ERROR = "execution_error"
    DEPENDENCY_ERROR = "dependency_error"
    OUTPUT_VALIDATION_ERROR = "output_validation_error"
    EXECUTOR_NOT_FOUND = "executor_not_found"
    UNAVAILABLE = "unavailable"


class CallMode(StrEnum):
    SYNC = "sync"
    ASYNC = "async"


class Caller(Contract):
    """The caller of a tool, and on whose behalf it calls."""

    caller_id: Annotated[str | None, Field(max_length=200)] = None
    caller_type: Annotated[str, Field(max_length=64)] = "unknown"
    """conversation_agent, workflow_node, direct or unknown"""
    conversation_id: Annotated[str | None, Field(max_length=200)] = None
    workflow_id: Annotated[str | None, Field(max_length=200)] = None
    node_id: Annotated[str | None, Field(max_length=200)] = None
    variables: dict[str, JsonValue] = {}

    def __hash__(self) -> int:
        """Without the variables, which cannot be hashed. A default that cannot be hashed is copied for each call."""
        return hash((self.caller_id, self.caller_type, self.conversation_id, self.workflow_id, self.node_id))

    @classmethod
    def for_conversation(cls, agent_id: str, conversation_id: str, variables: dict[str, JsonValue] | None = None) -> Self:
        return cls(caller_id=agent_id, caller_type="conversation_agent", conversation_id=conversation_id, variables=variables or {})

    @classmethod
    def for_workflow(cls, workflow_id: str, node_id: str, variables: dict[str, JsonValue] | None = None) -> Self:
        return cls(caller_id=node_id, caller_type="workflow_node", workflow_id=workflow_id, node_id=node_id, variables=variables or {})


class ToolCall(Contract):
    """A call of a tool."""

    tool_id: ToolId
    params: dict[str, JsonValue] = {}
    version: Annotated[str | None, Field(max_length=64)] = None
    """An exact version or a range (`^1.2`, `~1.2.3`, `>=1.2 <2`); unset: the active one."""
    mode: CallMode = CallMode.SYNC
    timeout_s: UpToADay | None = None
    """Seconds that the call may take, at most what the tool allows."""
    idempotency_key: IdempotencyKey | None = None
    caller: Caller = Caller()
    stream: bool = False
    priority: Annotated[int, Field(ge=1, le=5)] = 3
    """1 is served first when slots are short."""
    callback_url: CallbackUrl | None = None
    """URL to which the signed result is posted when a call of mode `async` has ended."""
    listens: Listener | None = None
    """Messages and questions that the caller takes while the call runs; unset: none."""


class ValidationIssue(Contract):
    """One fault of the parameters or the output, with its place."""

    path: str
    """JSON path, `$` is the whole value."""
    message: str
    keyword: str = ""
    """The JSON Schema keyword that failed."""


class ToolError(Contract):
    """The error of a call. It is data, not an exception: the caller reads it and may try again."""

    type: ErrorType
    message: str
    details: JsonValue = None


class ToolResult(Contract):
    """The result of a call. `execution_time` is in seconds, without waiting."""

    status: Literal["success", "error"]
    result: JsonValue = None
    is_reference: bool = False
    """`result` is a ResultReference, because the result itself is too large."""
    error: ToolError | None = None
    error_type: ErrorType | None = None
    validation_errors: tuple[ValidationIssue, ...] = ()
    execution_time: float = 0.0
    executed_at: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    metadata: dict[str, JsonValue] = {}
    call_id: str = ""
    tool_id: str = ""
