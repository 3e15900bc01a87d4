"""The source store (seed 001 §3): where tools run from."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from engine.store.tools import ToolTable
from toolagent.contracts.sources import ToolSource

__all__ = ["SourceStore", "UnknownToolError"]


class UnknownToolError(LookupError):
    """There is no tool with this id."""


class SourceStore:
    """The sources of each tool's active version, the preferred one first."""

    def __init__(self, tools: ToolTable) -> None:
        self._tools = tools

    async def load(self) -> dict[str, list[dict[str, JsonValue]]]:
        """All sources, as in `sources.json`."""
        entries = await self._tools.list_active_versions()
        return {entry.manifest.tool_id: [source.model_dump(mode="json") for source in entry.sources] for entry in entries if entry.sources}

    async def save(self, sources: Mapping[str, Sequence[ToolSource]]) -> None:
        """Replace the sources of the tools that are named. Raises UnknownToolError."""
        for tool_id, new in sources.items():
            await self._put(tool_id, tuple(new))

    async def add_source(self, tool_id: str, source: ToolSource) -> None:
        """Add a source behind the others; one that is there already is not added again. Raises UnknownToolError."""
        present = await self.get_sources(tool_id)
        if source not in present:
            await self._put(tool_id, (*present, source))

    async def get_sources(self, tool_id: str) -> tuple[ToolSource, ...]:
        """Empty for a tool that does not exist or has none."""
        entry = await self._tools.get(tool_id)
        return entry.sources if entry else ()

    async def remove_tool(self, tool_id: str) -> None:
        """Forget the sources of a tool; the tool stays."""
        if await self._tools.get(tool_id) is not None:
            await self._put(tool_id, ())

    async def _put(self, tool_id: str, sources: tuple[ToolSource, ...]) -> None:
        entry = await self._tools.get(tool_id)
        if entry is None:
            raise UnknownToolError(f"There is no tool {tool_id!r}.")
        await self._tools.put_sources(tool_id, entry.manifest.version, sources)
