"""Decides which tools a front door serves without a host: built-in tools, and tools that others run."""

from collections.abc import Container

from engine.runtimes.http.remote_keys import Secrets
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.sources import ToolSource
from toolagent_service.calls.ways import has_effects
from toolagent_service.contracts.lanes import LaneMode


def is_served(lanes: LaneMode, builtin: Container[str], secrets: Secrets, entry: ToolEntry) -> bool:
    """Whether all sources can be reached from here, and calls may take the lane."""
    may = lanes is LaneMode.ALL or (lanes is LaneMode.HARMLESS and not has_effects(entry))
    return may and bool(entry.sources) and all(_is_reached(source, builtin, secrets) for source in entry.sources)


def _is_reached(source: ToolSource, builtin: Container[str], secrets: Secrets) -> bool:
    traits = source.traits
    if traits.handler is not None:
        return traits.handler in builtin
    # Only hosts have the keys that came with their catalogs.
    return traits.elsewhere and all(map(secrets, traits.secrets))
