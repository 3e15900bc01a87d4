"""Where a call waits: the queue of its bucket, or that of the host its tool lives on."""

from collections.abc import Collection
from dataclasses import dataclass

from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.steps import Placement
from toolagent.core.dispatch import placement_of

__all__ = ["Placements"]


@dataclass(frozen=True, slots=True)
class Placements:
    """Decides on behalf of `host`, which is alive."""

    host: str
    buckets: Collection[str]

    async def choose(self, entry: ToolEntry, avoid: str | None = None) -> Placement:
        """`avoid` is a host that did not take the call in time; it may be dead, or only busy."""
        del avoid
        return placement_of(entry, self.buckets, self.host)
