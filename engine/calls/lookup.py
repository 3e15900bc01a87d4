"""The part of the registry that a call needs."""

from typing import Protocol

from toolagent.contracts.catalog import ToolEntry
from toolagent.validation.versions import NoSuchVersion, NotARangeError


class ToolLookup(Protocol):
    """Implemented by the registry, which calls may not import."""

    async def find(self, tool_id: str, wanted: str | None) -> ToolEntry | NoSuchVersion | None:
        """`wanted` is an exact version, or a range, which gives its highest callable version. None: no such tool. Raises NotARangeError."""
        ...

    async def list_ids(self) -> tuple[str, ...]: ...


async def entry_in(tools: ToolLookup, tool_id: str, version: str) -> ToolEntry | None:
    """The tool in this version, if it exists."""
    try:
        found = await tools.find(tool_id, version)
    except NotARangeError:
        return None
    return found if isinstance(found, ToolEntry) else None
