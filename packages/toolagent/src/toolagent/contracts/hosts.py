"""The machines that run tools."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from toolagent.contracts.contract import Contract

__all__ = ["Host", "HostDrain", "HostListing"]


class Host(Contract):
    """One host, as the database last heard of it. Times are by the clock of the database."""

    host: str
    instance: Annotated[str, Field(description="Of this life of its process.")]
    origin: Annotated[str, Field(description="Machine and state directory.")]
    buckets: dict[str, int] = {}
    started_at: datetime
    seen_at: datetime
    is_alive: bool = True
    draining_since: Annotated[datetime | None, Field(description="It takes no new calls since then; null: it does.")] = None
    calls: Annotated[dict[str, int], Field(description="Under way by bucket, as of `seen_at`.")] = {}
    tools: Annotated[int, Field(description="That are up on it.")] = 0
    sessions: Annotated[int, Field(description="Of groups, that live on it and have not ended.")] = 0


class HostListing(Contract):
    """All hosts that the database knows."""

    hosts: tuple[Host, ...]


class HostDrain(Contract):
    """How far a host has drained. Its own counts are as of its last heartbeat."""

    host: Host
    calls: Annotated[int, Field(description="Under way.")]
    tools: Annotated[int, Field(description="Still up.")]
    sessions: Annotated[int, Field(description="Whose tools are on it: they stay up until these have ended.")]
    tasks: Annotated[int, Field(description="Tasks on it that make or repair tools.")]
    is_drained: Annotated[bool, Field(description="It drains, and nothing is left: it may be stopped.")]
    warnings: tuple[str, ...] = ()
