"""The machines that run tools."""

from datetime import datetime

from toolagent.contracts.contract import Contract

__all__ = ["Host", "HostDrain", "HostListing"]


class Host(Contract):
    """One host, as the database last heard of it. Times are by the clock of the database."""

    host: str
    instance: str
    """Of this life of its process."""
    origin: str
    """Machine and state directory."""
    buckets: dict[str, int] = {}
    started_at: datetime
    seen_at: datetime
    is_alive: bool = True
    draining_since: datetime | None = None
    """It takes no new calls since then; null: it does."""
    calls: dict[str, int] = {}
    """Under way by bucket, as of `seen_at`."""
    tools: int = 0
    """That are up on it."""
    sessions: int = 0
    """Of groups, that live on it and have not ended."""


class HostListing(Contract):
    """All hosts that the database knows."""

    hosts: tuple[Host, ...]


class HostDrain(Contract):
    """How far a host has drained. Its own counts are as of its last heartbeat."""

    host: Host
    calls: int
    """Under way."""
    tools: int
    """Still up."""
    sessions: int
    """Whose tools are on it: they stay up until these have ended."""
    tasks: int
    """Tasks on it that make or repair tools."""
    is_drained: bool
    """It drains, and nothing is left: it may be stopped."""
    warnings: tuple[str, ...] = ()
