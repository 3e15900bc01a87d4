"""How a tool is used."""

from datetime import datetime

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId

__all__ = ["ToolUsage"]


class ToolUsage(Contract):
    """From the records of its calls; `since` is unset where all that are kept count. Times are in seconds."""

    tool_id: ToolId
    since: datetime | None = None
    calls: int
    running: int = 0
    """Of the calls, those that have not ended."""
    succeeded: int = 0
    failed: int = 0
    errors: dict[str, int] = {}
    """Of the calls that failed, how many with each error type."""
    error_rate: float | None = None
    """`failed` as a share of the calls that have ended."""
    average_s: float | None = None
    """Of the calls that reached the tool: from sending to answer."""
    p95_s: float | None = None
    """The same: 95 of 100 took no longer."""
    last_used: datetime | None = None
