"""Groups as composite tools, read from the catalog."""

from engine.store.groups import GroupTable
from engine.store.tools import ToolTable
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.matching import CompositeTool
from toolagent.core.catalog.composites import composite_of, covering, members_of


class Composites:
    """All raise StoreUnavailableError."""

    def __init__(self, tools: ToolTable, groups: GroupTable) -> None:
        self._tools, self._groups = tools, groups

    async def covering(self, query: str) -> CompositeTool | None:
        """The composite for a query; None if it names no trigger, or none of the group's tools exists."""
        found = covering(query, await self._groups.list_all())
        if found is None:
            return None
        group, trigger = found
        entries = await self._tools.list_some(members_of(group))
        return composite_of(group, trigger, {entry.manifest.tool_id: entry.manifest for entry in entries}) if entries else None

    async def base_tools(self, group_id: str) -> tuple[ToolManifest, ...]:
        group = await self._groups.get(group_id)
        entries = await self._tools.list_some(members_of(group)) if group else ()
        return tuple(entry.manifest for entry in entries)
