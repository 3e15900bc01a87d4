"""Finds cycles in dependencies between tools."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from toolagent.contracts.manifest import ToolDependency

__all__ = ["Node", "in_cycles"]

Matches = Callable[[str, str], bool]
"""Whether a range matches a version."""


@dataclass(frozen=True, slots=True)
class Node:
    """A version of a tool and its dependencies."""

    tool_id: str
    version: str
    dependencies: tuple[ToolDependency, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.tool_id}@{self.version}"


def in_cycles(nodes: Iterable[Node], matches: Matches) -> dict[Node, tuple[str, ...]]:
    """Each version in a cycle, with the names of a shortest cycle. A range depends on every version in it."""
    by_tool: dict[str, list[Node]] = {}
    for node in dict.fromkeys(nodes):
        by_tool.setdefault(node.tool_id, []).append(node)
    needs = {
        node: [other for wanted in node.dependencies for other in by_tool.get(wanted.tool_id, ()) if matches(wanted.version, other.version)]
        for some in by_tool.values()
        for node in some
    }
    ways = {node: _way_back(node, needs) for node in needs if needs[node]}
    return {node: tuple(one.name for one in way) for node, way in ways.items() if way}


def _way_back(start: Node, needs: dict[Node, list[Node]]) -> list[Node]:
    """From a node to itself, both ends included; empty when there is no way."""
    came_from: dict[Node, Node] = {}
    level = [start]
    while level and start not in came_from:
        following: list[Node] = []
        for node in level:
            for other in needs[node]:
                if other not in came_from:
                    came_from[other] = node
                    following.append(other)
        level = following
    if start not in came_from:
        return []
    way = [start, came_from[start]]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return way[::-1]
