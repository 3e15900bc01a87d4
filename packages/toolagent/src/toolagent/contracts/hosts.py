"""The machines that run tools."""

from datetime import datetime

from toolagent.contracts.contract import Contract

__all__ = ["Host", "HostDrain", "HostListing"]


class Host(Contract):
    """One host, as of its last heartbeat. Times are by the clock of the database."""

    host: str
    instance: str
    """The id of its running process."""
    origin: str
    """Machine and state directory."""
    buckets: dict[str, int] = {}
    started_at: datetime
    seen_at: datetime
    is_alive: bool = True
    draining_since: datetime | None = None
    """Since when it takes no new calls; null if it takes calls."""
    calls: dict[str, int] = {}
    """Running calls by bucket, as of `seen_at`."""
    tools: int = 0
    """Tools that are up on it."""
    sessions: int = 0
    """Open sessions of groups on it."""


class HostListing(Contract):
    """All hosts that the database knows."""

    hosts: tuple[Host, ...]


class HostDrain(Contract):
    """How far a host has drained. The counts are as of its last heartbeat."""

    host: Host
    calls: int
    """Running calls."""
    tools: int
    """Tools that are still up."""
    sessions: int
    """Sessions whose tools are on it. The tools stay up until these have ended."""
    tasks: int
    """Tasks on it that make or repair tools."""
    is_drained: bool
    """It drains, and nothing is left, so it can be stopped."""
    warnings: tuple[str, ...] = ()
