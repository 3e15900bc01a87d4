"""The router's matching: a need in, the tools that answer it out."""

from engine.registry.matching.composites import Composites
from engine.registry.matching.live import LiveRanking
from engine.registry.matching.ranking import Counts, Ranking
from engine.registry.matching.texts import Filters, traits_of
from engine.store.catalog_state import CatalogState
from engine.store.groups import GroupTable
from engine.store.tools import ToolTable
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.matching import CompositeTool, MatchKind, ToolMatch

_CANDIDATES = 10


class Matching:
    """One for each process that is asked. All raise StoreUnavailableError."""

    def __init__(self, tools: ToolTable, groups: GroupTable, state: CatalogState) -> None:
        self._tools = tools
        self._composites = Composites(tools, groups)
        self._ranking = LiveRanking(tools, state)

    async def match(self, query: str) -> ToolMatch:
        """By id or name, else by a group whose trigger is named, else by words and meanings, else none."""
        if tool := await self.match_tool(query):
            return ToolMatch(kind=MatchKind.DIRECT, tools=(tool,))
        if composite := await self.detect_composite_tool(query):
            return ToolMatch(kind=MatchKind.COMPOSITE, composite=composite)
        tools = tuple(entry.manifest for entry in await self.search_tools(query, limit=_CANDIDATES))
        return ToolMatch(kind=MatchKind.FUZZY if tools else MatchKind.NONE, tools=tools)

    async def match_tool(self, query: str) -> ToolManifest | None:
        """The tool with exactly this id or name; capital letters do not count."""
        ids = await self._ranking.ask(lambda ranking: ranking.named(query))
        found = await self._tools.list_some(ids[:1])
        return found[0].manifest if found else None

    async def counts(self) -> Counts:
        return await self._ranking.ask(Ranking.counts)

    async def search_tools(
        self,
        keyword: str = "",
        category: str | None = None,
        backend: BackendRuntime | None = None,
        tag: str | None = None,
        group: str | None = None,
        limit: int | None = None,
    ) -> tuple[ToolEntry, ...]:
        """The best first, at most 200; without a keyword all, by id."""
        found, _ = await self.search(keyword, Filters(category, backend, tag, group), limit)
        return found

    async def search(self, keyword: str, filters: Filters, limit: int | None = None) -> tuple[tuple[ToolEntry, ...], int]:
        """The same, and how many were found before the limit."""
        if not keyword.strip():
            entries = await self._tools.list_active_versions(filters.category)
            admitted = [entry for entry in entries if filters.admit(traits_of(entry.manifest))]
            return tuple(admitted[:limit]), len(admitted)
        ids = await self._ranking.ask(lambda ranking: ranking.search(keyword, filters))
        return await self._tools.list_some(ids[:limit]), len(ids)

    async def detect_composite_tool(self, query: str) -> CompositeTool | None:
        """The answer of the group whose trigger the query names."""
        return await self._composites.covering(query)

    async def get_base_tools(self, composite_type: str) -> tuple[ToolManifest, ...]:
        """The tools of the group with this id, in the order of their use; empty when there is none."""
        return await self._composites.base_tools(composite_type)
