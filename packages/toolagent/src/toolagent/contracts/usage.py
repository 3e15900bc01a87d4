"""Usage of tools, and the recorded calls of a conversation or a tool."""

from datetime import datetime

from toolagent.contracts.calls import Caller, ErrorType
from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId

__all__ = ["CallListing", "RecordedCall", "ToolUsage"]


class ToolUsage(Contract):
    """Statistics from the records of its calls; `since` is unset if all records count. Times are in seconds."""

    tool_id: ToolId
    since: datetime | None = None
    calls: int
    running: int = 0
    """Calls that have not ended."""
    succeeded: int = 0
    failed: int = 0
    errors: dict[str, int] = {}
    """Numbers of failed calls by error type."""
    error_rate: float | None = None
    """The share of `failed` in the ended calls."""
    average_s: float | None = None
    """Average time from sending to answer, of calls that reached the tool."""
    p95_s: float | None = None
    """95th percentile of the same."""
    last_used: datetime | None = None


class RecordedCall(Contract):
    """One call. `/tasks/{call_id}` has its result."""

    call_id: str
    tool_id: str
    version: str
    caller: Caller
    """Without its variables."""
    is_success: bool | None = None
    """Null until it has ended."""
    error_type: ErrorType | None = None
    execution_time: float | None = None
    """Seconds from sending to answer."""
    created_at: datetime
    settled_at: datetime | None = None


class CallListing(Contract):
    """Recorded calls, the newest first. The counts are of all that fit, not only of those listed."""

    total_calls: int
    successful_calls: int
    failed_calls: int
    success_rate: float = 100.0
    """Percent of the ended calls; 100 without any."""
    tool_usage: dict[str, int] = {}
    """Numbers of calls by tool."""
    calls: tuple[RecordedCall, ...] = ()
