"""Ranks tools by words and meanings."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.registry.matching.meanings import Meanings
from engine.registry.matching.texts import Filters, Traits, cut_texts_of, traits_of
from engine.registry.matching.word_index import Wanted, WordIndex
from engine.registry.matching.words import cut, telling_words, wholes_of
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.manifest import ToolManifest

MOST_FOUND = 200
_MOST_ALIKE = 50
_DAMPING = 3
"""Constant of reciprocal rank fusion. Small, because the first of either order is mostly right; with 60, the tenth in both won."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of tools."""

    by_backend: Mapping[BackendRuntime, int]
    by_category: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.by_backend.values())


class Ranking:
    """An index in memory. Not thread-safe during changes."""

    def __init__(self, meanings: Meanings | None = None) -> None:
        self._words = WordIndex()
        self._meanings = meanings
        self._known: dict[str, Traits] = {}
        self._named: dict[str, tuple[str, ...]] = {}

    def change(self, gone: Iterable[str], new: Sequence[ToolManifest]) -> None:
        """Remove tools; add or replace others."""
        leaving = {*gone, *(tool.tool_id for tool in new if tool.tool_id in self._known)}
        texts = cut_texts_of(new)
        self._words.change(leaving, texts, self._meanings.gloss if self._meanings else None)
        if self._meanings:
            self._meanings.change(leaving, texts)
        for tool_id in leaving & self._known.keys():
            self._forget(self._known.pop(tool_id))
        for tool in new:
            self._known[tool.tool_id] = traits = traits_of(tool)
            self._named[traits.called] = (*self._named.get(traits.called, ()), tool.tool_id)

    def _forget(self, tool: Traits) -> None:
        if left := tuple(tool_id for tool_id in self._named[tool.called] if tool_id != tool.tool_id):
            self._named[tool.called] = left
        else:
            del self._named[tool.called]

    def named(self, query: str) -> list[str]:
        """Ids of tools with exactly this id or name, ignoring case. Ids come before names."""
        asked = query.strip()
        ids = [tool_id for tool_id in dict.fromkeys((asked, asked.lower())) if tool_id in self._known]
        return [*dict.fromkeys((*ids, *self._named.get(asked.lower(), ())))]

    def counts(self) -> Counts:
        return Counts(Counter(tool.backend for tool in self._known.values()), Counter(tool.category for tool in self._known.values()))

    def search(self, query: str, filters: Filters) -> list[str]:
        """At most `MOST_FOUND` ids, the best first: exact names, then matches by words and meanings."""
        # With filters, search deep: the admitted tools may rank low among all.
        deep = max(len(self._known), 1) if filters else MOST_FOUND
        words = telling_words(query)
        meanings = self._meanings
        glosses = [*filter(None, map(meanings.gloss, cut(query)))] if meanings else ()
        by_words = self._words.search(Wanted([*words, *wholes_of(query)], glosses), deep)
        alike = meanings.search(query, deep if filters else _MOST_ALIKE) if meanings else []
        found = dict.fromkeys((*self.named(query), *_fused(by_words, alike)))
        admitted = [tool_id for tool_id in found if filters.admit(self._known[tool_id])] if filters else [*found]
        return admitted[:MOST_FOUND]


def _fused(*orders: Sequence[str]) -> list[str]:
    scores: dict[str, float] = {}
    for order in orders:
        for rank, tool_id in enumerate(order):
            scores[tool_id] = scores.get(tool_id, 0.0) + 1 / (_DAMPING + rank)
    return sorted(scores, key=scores.__getitem__, reverse=True)
