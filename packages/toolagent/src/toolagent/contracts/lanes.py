"""Lanes: where short calls are made in batches."""

from datetime import datetime

from toolagent.contracts.contract import Contract

__all__ = ["Lane", "LaneCounts", "LaneFigures", "LaneListing"]


class LaneCounts(Contract):
    """What a lane has done since its door was opened."""

    calls: int = 0
    moved: int = 0
    """Calls that got a workflow of their own."""

    waiting: int = 0
    """Calls that no batch has taken yet."""

    per_second: float = 0.0
    """Calls a second, lately."""


class LaneFigures(LaneCounts):
    """And what is wrong with it."""

    last_error: str = ""
    """What went wrong last between the door and Temporal or the database; empty: nothing."""


class Lane(Contract):
    """The lane of one front door. `workflow_id` is its workflow in Temporal; `host` the host in the same process, if any."""

    door: str
    workflow_id: str
    host: str | None = None
    started_at: datetime
    seen_at: datetime
    figures: LaneFigures = LaneFigures()


class LaneListing(Contract):
    lanes: tuple[Lane, ...] = ()
