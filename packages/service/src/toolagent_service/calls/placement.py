"""Which host takes a tool that lives on one."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from toolagent.contracts.manifest import ToolManifest
from toolagent_service.calls.dispatch import bucket_of

__all__ = ["HostLoad", "best_host", "hosts_with_bucket"]


@dataclass(frozen=True, slots=True)
class HostLoad:
    """The number of tools that are up on a host, those that share a process being one, and whether the one in question is among them."""

    host: str
    tools: int = 0
    has_it: bool = False


def hosts_with_bucket(manifest: ToolManifest, alive: Mapping[str, Collection[str]]) -> Collection[str]:
    """Of the hosts that are alive, with the buckets they serve: those with the bucket the tool asks for; all, when none has it.

    A host without it would call the tool in its default bucket, where nothing is known of what the other one is for.
    """
    bucket = bucket_of(manifest, {name for buckets in alive.values() for name in buckets})
    return [host for host, buckets in alive.items() if bucket in buckets] or alive.keys()


def best_host(alive: Collection[str], loads: Iterable[HostLoad], own: str | None, avoid: str | None = None) -> str | None:
    """One that has the tool up, `own` before others; else the one with the fewest tools up. None when none is alive.

    Among equals `own` comes first, then the first by name. `avoid` is taken only when there is no other.
    """
    candidates = {*alive} - {avoid} or {*alive}
    known = {load.host: load for load in loads}
    chosen = [known.get(host, HostLoad(host)) for host in candidates]

    def order(load: HostLoad) -> tuple[bool, bool, int, bool, str]:
        elsewhere = load.host != own
        return not load.has_it, load.has_it and elsewhere, load.tools, elsewhere, load.host

    return min(chosen, key=order).host if chosen else None
