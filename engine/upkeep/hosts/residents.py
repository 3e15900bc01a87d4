"""Sessions that live on a host, because their tools hold state there."""

from collections import defaultdict
from collections.abc import Collection, Mapping

from engine.registry.registry import ToolRegistry
from engine.store.sessions import SessionTable
from toolagent.contracts.sources.source import Traits


class Residents:
    """A session lives on the host of its launch if a tool of its group does. Every method raises StoreUnavailableError."""

    def __init__(self, sessions: SessionTable, registry: ToolRegistry) -> None:
        self._sessions, self._registry = sessions, registry

    async def by_host(self) -> Mapping[str, Collection[str]]:
        """The ids of living sessions, without unreadable ones."""
        return {host: [session_id for session_id, _ in found] for host, found in (await self._found(all_of=False)).items()}

    async def tools_on(self, host: str) -> Collection[str]:
        """The tools of the groups of its sessions. Raises SessionUnreadableError."""
        return {tool_id for _, tools in (await self._found(all_of=True)).get(host, ()) for tool_id in tools}

    async def lives_on_host(self, tool_id: str) -> bool:
        """Whether the tool is a process or a container of a host."""
        return any(traits.on_host for traits in await self._traits(tool_id))

    async def is_kept_up(self, tool_id: str) -> bool:
        """Whether calls keep a process or a container of a host up."""
        return any(traits.on_host and traits.stays_up for traits in await self._traits(tool_id))

    async def _traits(self, tool_id: str) -> list[Traits]:
        entry = await self._registry.entry(tool_id)
        return [source.traits for source in entry.sources] if entry else []

    async def _found(self, *, all_of: bool) -> Mapping[str, list[tuple[str, Collection[str]]]]:
        found = defaultdict[str, list[tuple[str, Collection[str]]]](list)
        known: dict[str, bool] = {}
        for request, view in await self._sessions.living(all_of=all_of):
            tools = request.group.all_tool_ids
            known |= {tool_id: await self.lives_on_host(tool_id) for tool_id in tools - known.keys()}
            if view.host is not None and any(known[tool_id] for tool_id in tools):
                found[view.host].append((view.session_id, tools))
        return found
