"""What the registry knows of one tool version."""

from toolagent.contracts.contract import Contract
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import ToolSource

__all__ = ["ToolEntry"]


class ToolEntry(Contract):
    """A tool version and where it can be run from, the preferred source first."""

    manifest: ToolManifest
    sources: tuple[ToolSource, ...] = ()
