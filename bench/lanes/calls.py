"""Of the calls those that the bounds of lanes need."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.rounds import Target

_CALLERS: Mapping[str, Sequence[int]] = {
    "ours.echo": (1, 16, 64),
    "ours.key": (64,),
    "ours.free": (16, 64),
    "ours.acting": (1, 16),
    "all.acting": (16,),
    "bare.local": (1, 64),
    "ours.session": (1, 64),
    "bare.update": (64,),
    "bare.own": (1, 64),
    "bare.http": (1, 16),
    "fastmcp.echo": (16, 64),
    "fastmcp.http": (16, 64),
    "dbos.echo": (16, 64),
}

PEERS = ("all", "bare", "fastmcp", "dbos")
"""Which have rows here."""


def calls_of_lanes(targets: Sequence[Target]) -> list[Target]:
    """Those of these with the numbers of callers that a bound asks for."""
    return [replace(target, callers=_CALLERS[target.name]) for target in targets if target.name in _CALLERS]
