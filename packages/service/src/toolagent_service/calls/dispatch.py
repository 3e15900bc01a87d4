"""Where and how a call is made: bucket, queue, and the time it gets."""

from collections.abc import Collection

from toolagent.contracts.calls import ToolCall
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import ToolSource
from toolagent_service.contracts.steps import Placement

__all__ = ["DEFAULT_BUCKET", "bucket_of", "lives_on_host", "placement_of", "timeout_of"]

DEFAULT_BUCKET = "default"


def bucket_of(manifest: ToolManifest, buckets: Collection[str]) -> str:
    """The bucket whose slots a call takes: the tool's own, else its category's, else the default one."""
    for name in (manifest.bucket, manifest.category):
        if name is not None and name in buckets:
            return name
    return DEFAULT_BUCKET


def lives_on_host(source: ToolSource) -> bool:
    """Whether a tool with this source runs on one host and can only be called from there."""
    return source.traits.on_host


def placement_of(entry: ToolEntry, buckets: Collection[str], host: str) -> Placement:
    """The queue a call waits in: `<bucket>`, or `<host>/<bucket>` for tools that live on a host."""
    bucket = bucket_of(entry.manifest, buckets)
    if any(map(lives_on_host, entry.sources)):
        return Placement(queue=f"{host}/{bucket}", host=host)
    return Placement(queue=bucket)


def timeout_of(call: ToolCall, manifest: ToolManifest) -> float:
    """Seconds a call may take: what the caller asks for, never more than the tool allows."""
    return min(call.timeout_s or manifest.timeout_s, manifest.timeout_s)
