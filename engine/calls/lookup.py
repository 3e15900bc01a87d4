"""The part of the registry that a call needs."""

from typing import Protocol

from toolagent.contracts.catalog import ToolEntry

__all__ = ["ToolLookup"]


class ToolLookup(Protocol):
    """Registry and calls do not know each other; `workers` puts the registry in."""

    async def entry(self, tool_id: str, version: str | None = None) -> ToolEntry | None: ...
    async def list_ids(self) -> tuple[str, ...]: ...
