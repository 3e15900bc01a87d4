"""The machines that run tools."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from toolagent.contracts.contract import Contract

__all__ = ["Host", "HostListing"]


class Host(Contract):
    """One host, as the database last heard of it. Times are by the clock of the database."""

    host: str
    instance: Annotated[str, Field(description="Of this life of its process.")]
    origin: Annotated[str, Field(description="Machine and state directory.")]
    buckets: dict[str, int] = {}
    started_at: datetime
    seen_at: datetime
    is_alive: bool = True


class HostListing(Contract):
    """All hosts that the database knows."""

    hosts: tuple[Host, ...]
