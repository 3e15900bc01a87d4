"""Sessions that live on a host: their tools hold their state there."""

from collections import defaultdict
from collections.abc import Collection, Mapping

from engine.registry.registry import ToolRegistry
from engine.store.sessions import SessionTable


class Residents:
    """A session lives on the host of its launch, if a tool of its group does. All raise StoreUnavailableError."""

    def __init__(self, sessions: SessionTable, registry: ToolRegistry) -> None:
        self._sessions, self._registry = sessions, registry

    async def by_host(self) -> Mapping[str, Collection[str]]:
        """The ids of living sessions, but for those that cannot be read."""
        return {host: [session_id for session_id, _ in found] for host, found in (await self._found(all_of=False)).items()}

    async def tools_on(self, host: str) -> Collection[str]:
        """The tools of the groups of its sessions. Raises SessionUnreadableError."""
        return {tool_id for _, tools in (await self._found(all_of=True)).get(host, ()) for tool_id in tools}

    async def lives_on_host(self, tool_id: str) -> bool:
        """Whether it is a process, or a container, of ours."""
        entry = await self._registry.entry(tool_id)
        return entry is not None and any(source.traits.on_host for source in entry.sources)

    async def is_kept_up(self, tool_id: str) -> bool:
        """Whether to call it keeps a process, or a container, of ours up."""
        entry = await self._registry.entry(tool_id)
        return entry is not None and any(source.traits.on_host and source.traits.stays_up for source in entry.sources)

    async def _found(self, *, all_of: bool) -> Mapping[str, list[tuple[str, Collection[str]]]]:
        found = defaultdict[str, list[tuple[str, Collection[str]]]](list)
        known: dict[str, bool] = {}
        for request, view in await self._sessions.living(all_of=all_of):
            tools = request.group.all_tool_ids
            known |= {tool_id: await self.lives_on_host(tool_id) for tool_id in tools - known.keys()}
            if view.host is not None and any(known[tool_id] for tool_id in tools):
                found[view.host].append((view.session_id, tools))
        return found
