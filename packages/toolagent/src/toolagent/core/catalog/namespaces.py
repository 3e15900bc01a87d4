"""Namespaces of tool ids: `namespace:tool-name`."""

from collections.abc import Collection
from typing import Protocol

__all__ = ["is_among", "namespace_of"]


class Tagged(Protocol):
    @property
    def tool_id(self) -> str: ...
    @property
    def tags(self) -> Collection[str]: ...


def namespace_of(tool_id: str) -> str:
    """Empty for an id without one."""
    namespace, colon, _ = tool_id.partition(":")
    return namespace if colon else ""


def is_among(tool: Tagged, namespace: str | None, tag: str | None) -> bool:
    """Whether a tool is in this namespace and has this tag; None matches all. An empty namespace means ids without one."""
    return namespace in (None, namespace_of(tool.tool_id)) and (tag is None or tag in tool.tags)
