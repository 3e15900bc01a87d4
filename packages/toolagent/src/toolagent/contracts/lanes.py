"""Lanes, in which short calls are made in batches."""

from datetime import datetime

from toolagent.contracts.contract import Contract

__all__ = ["Lane", "LaneCounts", "LaneFigures", "LaneListing"]


class LaneCounts(Contract):
    """Counts of a lane since its front door opened."""

    calls: int = 0
    moved: int = 0
    """Calls that moved to a workflow of their own."""

    waiting: int = 0
    """Calls that are not in a batch yet."""

    per_second: float = 0.0
    """Recent calls per second."""


class LaneFigures(LaneCounts):
    """Counts of a lane, and its last error."""

    last_error: str = ""
    """The last error between the door and Temporal or the database; empty: none."""


class Lane(Contract):
    """The lane of one front door. `workflow_id` is its workflow on Temporal; `host` is the host in the same process, if any."""

    door: str
    workflow_id: str
    host: str | None = None
    started_at: datetime
    seen_at: datetime
    figures: LaneFigures = LaneFigures()


class LaneListing(Contract):
    lanes: tuple[Lane, ...] = ()
