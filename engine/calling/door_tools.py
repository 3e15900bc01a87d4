"""Which tools a front door that is no host serves itself: what is built in, and what others run."""

from collections.abc import Container

from engine.runtimes.http.remote_keys import Secrets
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.sources import ToolSource
from toolagent_service.calls.ways import has_effects
from toolagent_service.contracts.lanes import LaneMode


def is_served(lanes: LaneMode, builtin: Container[str], secrets: Secrets, entry: ToolEntry) -> bool:
    """Whether all of its sources can be reached from here, and its calls may take the lane at all."""
    may = lanes is LaneMode.ALL or (lanes is LaneMode.HARMLESS and not has_effects(entry))
    return may and bool(entry.sources) and all(_is_reached(source, builtin, secrets) for source in entry.sources)


def _is_reached(source: ToolSource, builtin: Container[str], secrets: Secrets) -> bool:
    traits = source.traits
    if traits.handler is not None:
        return traits.handler in builtin
    # Hosts keep the keys that came with their catalogs.
    return traits.elsewhere and all(map(secrets, traits.secrets))
