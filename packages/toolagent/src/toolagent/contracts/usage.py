"""Usage statistics of a tool."""

from datetime import datetime

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId

__all__ = ["ToolUsage"]


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
