"""One tool version in the registry."""

from toolagent.contracts.contract import Contract
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import ToolSource

__all__ = ["ToolEntry"]


class ToolEntry(Contract):
    """A tool version and its sources, the preferred one first."""

    manifest: ToolManifest
    sources: tuple[ToolSource, ...] = ()
