"""Of the calls those that the bounds of MCP need."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.rounds import Target

_CALLERS: Mapping[str, Sequence[int]] = {
    "ours.echo": (1,),
    "ours.upstream_by_mcp": (1,),
    "ours.upstream_by_http": (1,),
    **{f"mcp.{revision}.echo": (1, 16) for revision in ("session", "single")},
    **{f"mcp.{revision}.free": (16, 64) for revision in ("session", "single")},
    "fastmcp.echo": (16,),
    "fastmcp.http": (16,),
    "contextforge.http": (16, 64),
}

PEERS = ("mcp", "fastmcp", "contextforge")
"""Which have rows here."""


def calls_of_mcp(targets: Sequence[Target]) -> list[Target]:
    """Those of these with the numbers of callers that a bound asks for."""
    return [replace(target, callers=_CALLERS[target.name]) for target in targets if target.name in _CALLERS]
