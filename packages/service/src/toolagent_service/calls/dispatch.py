"""Where a call is made: its bucket, queue and host."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent_service.contracts.steps import Placement

DEFAULT_BUCKET = "default"


def bucket_of(manifest: ToolManifest, buckets: Collection[str]) -> str:
    """The bucket whose slots a call takes: the tool's own, else its category's, else the default one."""
    for name in (manifest.bucket, manifest.category):
        if name is not None and name in buckets:
            return name
    return DEFAULT_BUCKET


def placement_of(entry: ToolEntry, buckets: Collection[str], host: str) -> Placement:
    """The queue a call waits in: `<bucket>`, or `<host>/<bucket>` for tools that live on a host."""
    bucket = bucket_of(entry.manifest, buckets)
    if any(source.traits.on_host for source in entry.sources):
        return Placement(queue=f"{host}/{bucket}", host=host)
    return Placement(queue=bucket)


@dataclass(frozen=True, slots=True)
class HostStanding:
    """A live host: its slots and running calls by bucket. One that `drains` takes no new calls."""

    buckets: Mapping[str, int]
    calls: Mapping[str, int] = field(default_factory=dict[str, int])
    drains: bool = False

    def share_of(self, bucket: str) -> float:
        """The share of the bucket's slots in use. Calls without a slot count too, so it may exceed 1."""
        return self.calls.get(bucket, 0) / max(self.buckets.get(bucket, 1), 1)


@dataclass(frozen=True, slots=True)
class HostLoad:
    """The number of tools that are up on a host, counting a shared process once, and whether the wanted tool is one of them.

    `share` is the share of slots in use.
    """

    host: str
    tools: int = 0
    has_it: bool = False
    share: float = 0.0

    @property
    def quarter(self) -> int:
        """The share in quarters. It is as old as a heartbeat, so single calls make no difference."""
        return int(self.share * 4)


def hosts_with_bucket(manifest: ToolManifest, alive: Mapping[str, Collection[str]]) -> Collection[str]:
    """The live hosts with the bucket of the tool; all hosts if none has it. `alive`: the buckets of each host.

    A host without the bucket would call the tool in its default bucket, without the limits of the right one.
    """
    bucket = bucket_of(manifest, {name for buckets in alive.values() for name in buckets})
    return [host for host, buckets in alive.items() if bucket in buckets] or alive.keys()


def best_host(
    alive: Collection[str], loads: Iterable[HostLoad], own: str | None, avoid: str | None = None, prefer: str | None = None
) -> str | None:
    """A host with the tool up, the least busy first, then `own`; else the host with the fewest tools up. None if no host is alive.

    Among equals, the least busy comes first, then `own`, then the first by name. `avoid` is used only if there is no other. `prefer`
    comes before all, even if it is `avoid`.
    """
    candidates = {*alive} - {avoid if avoid != prefer else None} or {*alive}
    known = {load.host: load for load in loads}
    chosen = [known.get(host, HostLoad(host)) for host in candidates]

    def order(load: HostLoad) -> tuple[bool, bool, int, bool, int, int, bool, str]:
        elsewhere, its_quarter = load.host != own, load.quarter if load.has_it else 0
        return (
            load.host != prefer,
            not load.has_it,
            its_quarter,
            load.has_it and elsewhere,
            load.tools,
            load.quarter,
            elsewhere,
            load.host,
        )

    return min(chosen, key=order).host if chosen else None
