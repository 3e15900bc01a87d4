"""One invocation and how it ended."""

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
"""In `details` of an error: what the tool's own world calls it, such as a script's `ScriptError`."""

IdempotencyKey = Annotated[str, Field(min_length=1, max_length=255)]


class ErrorType(StrEnum):
    """Everything that can go wrong with a call: a closed set."""

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
    """Who asks, and on whose behalf."""

    caller_id: Annotated[str | None, Field(max_length=200)] = None
    caller_type: Annotated[str, Field(max_length=64)] = "unknown"
    """conversation_agent, workflow_node, direct or unknown"""
    conversation_id: Annotated[str | None, Field(max_length=200)] = None
    workflow_id: Annotated[str | None, Field(max_length=200)] = None
    node_id: Annotated[str | None, Field(max_length=200)] = None
    variables: dict[str, JsonValue] = {}

    def __hash__(self) -> int:
        """Without the variables, which have none. A default without one is copied for each call."""
        return hash((self.caller_id, self.caller_type, self.conversation_id, self.workflow_id, self.node_id))

    @classmethod
    def for_conversation(cls, agent_id: str, conversation_id: str, variables: dict[str, JsonValue] | None = None) -> Self:
        return cls(caller_id=agent_id, caller_type="conversation_agent", conversation_id=conversation_id, variables=variables or {})

    @classmethod
    def for_workflow(cls, workflow_id: str, node_id: str, variables: dict[str, JsonValue] | None = None) -> Self:
        return cls(caller_id=node_id, caller_type="workflow_node", workflow_id=workflow_id, node_id=node_id, variables=variables or {})


class ToolCall(Contract):
    """What is asked of a tool."""

    tool_id: ToolId
    params: dict[str, JsonValue] = {}
    version: Annotated[str | None, Field(max_length=64)] = None
    """An exact version or a range (`^1.2`, `~1.2.3`, `>=1.2 <2`); unset: the active one."""
    mode: CallMode = CallMode.SYNC
    timeout_s: UpToADay | None = None
    """Seconds the call may take; never more than the tool allows."""
    idempotency_key: IdempotencyKey | None = None
    caller: Caller = Caller()
    stream: bool = False
    priority: Annotated[int, Field(ge=1, le=5)] = 3
    """1 is served first when slots are short."""
    callback_url: CallbackUrl | None = None
    """Where the signed result is posted when a call of mode `async` has ended."""
    listens: Listener | None = None
    """What the caller hears and answers while the call goes on; unset: it only waits."""


class ValidationIssue(Contract):
    """One thing that is wrong with the parameters or the output, and where."""

    path: str
    """JSON path, `$` is the whole value."""
    message: str
    keyword: str = ""
    """The JSON Schema keyword that failed."""


class ToolError(Contract):
    """The tool could not do it. Data, not an exception: the caller reads it and may try again."""

    type: ErrorType
    message: str
    details: JsonValue = None


class ToolResult(Contract):
    """How a call ended. `execution_time` is in seconds, waiting excluded."""

    status: Literal["success", "error"]
    result: JsonValue = None
    is_reference: bool = False
    """`result` is a ResultReference to the real one, which is too large."""
    error: ToolError | None = None
    error_type: ErrorType | None = None
    validation_errors: tuple[ValidationIssue, ...] = ()
    execution_time: float = 0.0
    executed_at: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    metadata: dict[str, JsonValue] = {}
    call_id: str = ""
    tool_id: str = ""
