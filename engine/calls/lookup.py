"""The part of the registry that a call needs."""

from typing import Protocol

from toolagent.contracts.catalog import ToolEntry
from toolagent.validation.versions import NoSuchVersion


class ToolLookup(Protocol):
    """Registry and calls do not know each other; `workers` puts the registry in."""

    async def entry(self, tool_id: str, version: str | None = None) -> ToolEntry | None: ...

    async def find(self, tool_id: str, wanted: str | None) -> ToolEntry | NoSuchVersion | None:
        """`wanted` is an exact version or a range: the highest version in it that can be called. None: there is no such tool.

        Raises NotARangeError.
        """
        ...

    async def list_ids(self) -> tuple[str, ...]: ...
