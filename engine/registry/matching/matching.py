"""Matching of needs to tools."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.registry.matching.composites import Composites
from engine.registry.matching.evidence import words_in_common
from engine.registry.matching.live import LiveRanking
from engine.registry.matching.ranking import Counts, Ranking
from engine.registry.matching.texts import Filters, traits_of
from engine.registry.matching.words import telling_words
from engine.store.catalog_state import CatalogState
from engine.store.groups import GroupTable
from engine.store.tools import ToolTable
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.matching import CompositeTool, MatchKind, ToolMatch

_CANDIDATES = 10
_DONE_TO = re.compile("[把将](.+)")
"""The object, then what to do with it."""


@dataclass(frozen=True, slots=True)
class Need:
    """What to search for; without `words`, the whole category."""

    words: str
    category: str | None = None


class Matching:
    """One per process. All methods raise StoreUnavailableError."""

    def __init__(self, tools: ToolTable, groups: GroupTable, state: CatalogState) -> None:
        self._tools = tools
        self._composites = Composites(tools, groups)
        self._ranking = LiveRanking(tools, state)

    async def match(self, query: str, need: Need | None = None, ids: Sequence[str] = ()) -> ToolMatch:
        """Match by id or name, else by a group whose trigger is named, else by words and meanings, else none.

        `need` is what to search for, if not the whole query. `ids` are words of the query that may be tool ids. A group does not count
        if a tool outside it says more of the need.
        """
        named = await self.match_tool(query)
        if tool := named or next((entry.manifest for entry in await self._tools.list_some(ids)), None):
            return ToolMatch(kind=MatchKind.DIRECT, tools=(tool,))
        wanted = Need(query) if need is None else need
        found = await self.search_tools(wanted.words, wanted.category, limit=_CANDIDATES) if wanted.words or wanted.category else ()
        tools = tuple(entry.manifest for entry in found)
        if (composite := await self.detect_composite_tool(query)) is not None:
            better = await self._better(composite, query, wanted.words, tools)
            if not better:
                return ToolMatch(kind=MatchKind.COMPOSITE, composite=composite)
            tools = (*better, *(tool for tool in tools if tool not in better))
        return ToolMatch(kind=MatchKind.FUZZY if tools else MatchKind.NONE, tools=tools)

    async def match_tool(self, query: str) -> ToolManifest | None:
        """The tool with exactly this id or name, ignoring case."""
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
        """Tools for a keyword, the best first, at most 200; without a keyword, all tools by id."""
        found, _ = await self.search(keyword, Filters(category, backend, tag, group), limit)
        return found

    async def search(self, keyword: str, filters: Filters, limit: int | None = None) -> tuple[tuple[ToolEntry, ...], int]:
        """The same, with the number found before the limit."""
        if not keyword.strip():
            entries = await self._tools.list_active_versions(filters.category)
            admitted = [entry for entry in entries if filters.admit(traits_of(entry.manifest))]
            return tuple(admitted[:limit]), len(admitted)
        ids = await self._ranking.ask(lambda ranking: ranking.search(keyword, filters))
        return await self._tools.list_some(ids[:limit]), len(ids)

    async def detect_composite_tool(self, query: str) -> CompositeTool | None:
        """The composite of the group whose trigger the query names."""
        return await self._composites.covering(query)

    async def _better(self, composite: CompositeTool, query: str, need: str, found: Sequence[ToolManifest]) -> Sequence[ToolManifest]:
        """Tools outside the group that have a word of the need which no member has.

        That word must be the action, with enough other words or the best rank; or the tool has as many words as any member.
        """
        members = await self.get_base_tools(composite.group_id)
        said = [words_in_common(need, tool) for tool in members]
        most, known = max(map(len, said), default=0), {word for words in said for word in words}
        others = [(tool, words_in_common(need, tool)) for tool in found if tool not in members]
        action, enough = _to_be_done(need, query)
        return [
            tool
            for tool, words in others
            if (action in words and action not in known and (len(words) >= enough or tool is found[0]))
            or (len(words) >= most and not known.issuperset(words))
        ]

    async def get_base_tools(self, composite_type: str) -> tuple[ToolManifest, ...]:
        """The tools of the group with this id, in order of use; empty if there is none."""
        return await self._composites.base_tools(composite_type)


def _to_be_done(need: str, query: str) -> tuple[str, int]:
    """The action of a need, and how many of its words a tool must have.

    “Summarize the text of a page” begins with the action. So does “start a browser”, and many tools start something: one word is not
    enough. After 把 or 将 the last word is the action, and one word is enough.
    """
    done = _DONE_TO.search(query)
    if done is not None and (words := telling_words(done[1])):
        return words[-1], 1
    return next(iter(telling_words(need)), ""), 2
