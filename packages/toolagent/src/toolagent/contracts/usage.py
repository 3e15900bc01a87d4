"""How a tool is used."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId

__all__ = ["ToolUsage"]


class ToolUsage(Contract):
    """From the records of its calls; `since` is unset where all that are kept count. Times are in seconds."""

    tool_id: ToolId
    since: datetime | None = None
    calls: int
    running: Annotated[int, Field(description="Of the calls, those that have not ended.")] = 0
    succeeded: int = 0
    failed: int = 0
    errors: Annotated[dict[str, int], Field(description="Of the calls that failed, how many with each error type.")] = {}
    error_rate: Annotated[float | None, Field(description="`failed` as a share of the calls that have ended.")] = None
    average_s: Annotated[float | None, Field(description="Of the calls that reached the tool: from sending to answer.")] = None
    p95_s: Annotated[float | None, Field(description="The same: 95 of 100 took no longer.")] = None
    last_used: datetime | None = None
