"""Faults of a tool file besides its content: its size, the place of its script, conflicts with other files."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from toolagent.core.catalog.dependencies import Matches, Node, in_cycles

__all__ = ["MAX_BYTES", "ScriptPlace", "circles", "doubles", "misplaced", "too_large"]

MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class ScriptPlace:
    """A script path resolved from `base`, links followed; `real` is None for a broken or circular link."""

    base: str
    real_base: PurePath
    real: PurePath | None
    is_file: bool


def too_large(size: int) -> str | None:
    """The fault of a file with too many bytes."""
    return f"The file is larger than {MAX_BYTES // 1000} kB." if size > MAX_BYTES else None


def misplaced(path: str, bases: Sequence[str], found: ScriptPlace | None) -> str | None:
    """Why a script cannot be used. It was looked up from each of `bases`; `found` is the match, if any."""
    if found is None:
        return f"There is no file {path!r} {' nor '.join(f'in {base!r}' for base in bases)}."
    if found.real is None:
        return f"{path!r} is a link that leads nowhere, or in a circle."
    if not found.real.is_relative_to(found.real_base):
        return f"{path!r} leads out of {found.base!r} by a link. Put the script itself there."
    if not found.is_file:
        return f"{path!r} is no file."
    return None


def doubles(nodes: Mapping[str, Node], before: Mapping[str, str], staying: Iterable[str] = ()) -> dict[str, str]:
    """By file name, the fault of files whose id and version another file has. The first file stays.

    `before` maps files to versions (`tool_id@version`) so far, `staying` names those that count without being read.
    """
    holders = {before[name]: name for name in staying}
    faults: dict[str, str] = {}
    for name in sorted(nodes, key=lambda name: (before.get(name) != nodes[name].name, name)):
        node = nodes[name]
        holder = holders.setdefault(node.name, name)
        if holder != name:
            faults[name] = f"{holder} has version {node.version} of {node.tool_id!r} already. Name another one."
    return faults


def circles(nodes: Mapping[str, Node], others: Iterable[Node], matches: Matches) -> dict[str, str]:
    """By file name, the fault of files whose tool depends on itself, perhaps through `others` from elsewhere."""
    ways = in_cycles((*nodes.values(), *others), matches)
    return {
        name: f"The tools depend on each other in a circle: {' → '.join(way)}."
        for name, node in nodes.items()
        if (way := ways.get(node)) is not None
    }
