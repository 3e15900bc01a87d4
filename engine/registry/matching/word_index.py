"""BM25 over the words of tools: an index of Tantivy in memory."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import tantivy

from engine.registry.matching.texts import CutTexts
from engine.registry.matching.words import HAN, wholes_of, words_of

_WRITER_BYTES = 60_000_000
"""Memory limit of the writer. Enough for ten thousand tools, so that no segments need merging."""
_TOOL, _WORDS, _GLOSSES = "tool", "words", "glosses"
_AT_SPACES = "whitespace"
_SHORTEST = 4
_OF_A_GLOSS = 0.6
"""Weight of an English word from the dictionary, relative to a word of the text."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The words of a need, and glosses of its Chinese words."""

    words: Sequence[str]
    glosses: Sequence[str] = ()


class WordIndex:
    """Not thread-safe during changes."""

    def __init__(self) -> None:
        builder = tantivy.SchemaBuilder()
        builder.add_text_field(_TOOL, stored=True, tokenizer_name="raw")
        for field in (_WORDS, _GLOSSES):
            builder.add_text_field(field, tokenizer_name=_AT_SPACES, index_option="freq")
        self._schema = builder.build()
        self._index = tantivy.Index(self._schema)
        plain = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
        self._analyzer = plain.filter(tantivy.Filter.lowercase()).filter(tantivy.Filter.stemmer("english")).build()
        self._searcher = self._index.searcher()
        self._signs: dict[str, str] = {}
        """The Chinese text of summaries, scanned if no word of a need was found. That takes milliseconds for thousands of tools.
        Indexing single characters would cost more than it saves."""
        self._found: dict[tuple[int, int], str] = {}
        """Cached ids by document address: reading a document costs more than finding it."""

    def change(self, gone: Iterable[str], new: CutTexts, gloss: Callable[[str], str] | None = None) -> None:
        """Remove tools and add texts. `gloss` translates a Chinese word."""
        writer = self._index.writer(_WRITER_BYTES, 1)
        for tool_id in gone:
            writer.delete_documents_by_term(_TOOL, tool_id)
            self._signs.pop(tool_id, None)
        for document in self._documents(new, gloss):
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher, self._found = self._index.searcher(), {}

    def search(self, wanted: Wanted, limit: int) -> list[str]:
        """Ids of tools with at least one of the words, the best first; if there is none, with a similar word."""
        found = self._ask([*self._exactly(wanted)], limit)
        if found:
            return found
        signs = {sign for word in wanted.words for sign in HAN.findall(word)}
        return self._with_signs(signs)[:limit] if signs else self._ask([*self._nearly(wanted.words)], limit)

    def _ask(self, clauses: Collection[tuple[tantivy.Occur, tantivy.Query]], limit: int) -> list[str]:
        if not clauses:
            return []
        hits = self._searcher.search(tantivy.Query.boolean_query([*clauses]), limit).hits
        return [self._id_at(address) for _, address in hits]

    def _id_at(self, address: tantivy.DocAddress) -> str:
        place = address.segment_ord, address.doc
        if (known := self._found.get(place)) is None:
            known = self._found[place] = str(self._searcher.doc(address)[_TOOL][0])
        return known

    def _exactly(self, wanted: Wanted) -> Iterator[tuple[tantivy.Occur, tantivy.Query]]:
        for stem in self._stems(wanted.words):
            yield self._term(_WORDS, stem, 1.0)
        # The dictionary works in both directions: an English word may be a gloss of a tool's Chinese text.
        for stem in self._stems(word for word in wanted.words if not HAN.match(word)):
            yield self._term(_GLOSSES, stem, _OF_A_GLOSS)
        for stem in self._stems(wanted.glosses):
            yield self._term(_WORDS, stem, _OF_A_GLOSS / 2)
            yield self._term(_GLOSSES, stem, _OF_A_GLOSS / 2)

    def _nearly(self, words: Sequence[str]) -> Iterator[tuple[tantivy.Occur, tantivy.Query]]:
        """Matches prefixes, and words with one wrong letter."""
        for stem in self._stems(word for word in words if len(word) >= _SHORTEST):
            similar = tantivy.Query.fuzzy_term_query(self._schema, _WORDS, stem, distance=1, prefix=True)
            yield (tantivy.Occur.Should, similar)

    def _with_signs(self, signs: Collection[str]) -> list[str]:
        """Ids of tools with all of these Chinese characters, those with the largest share first."""
        having = [*self._signs.items()]
        for sign in signs:
            having = [(tool_id, text) for tool_id, text in having if sign in text]
        shares = {tool_id: sum(map(text.count, signs)) / len(text) for tool_id, text in having}
        return sorted(shares, key=shares.__getitem__, reverse=True)

    def _stems(self, words: Iterable[str]) -> Iterable[str]:
        return dict.fromkeys(stem for word in words for stem in self._analyzer.analyze(word))

    def _term(self, field: str, stem: str, weight: float) -> tuple[tantivy.Occur, tantivy.Query]:
        term = tantivy.Query.term_query(self._schema, field, stem, "freq")
        return (tantivy.Occur.Should, term if weight == 1.0 else tantivy.Query.boost_query(term, weight))

    def _documents(self, texts: CutTexts, gloss: Callable[[str], str] | None) -> Iterator[tantivy.Document]:
        # Stem each distinct piece once; the index would stem every word of every text.
        pieces = [*texts.pieces]
        stems = [*map(self._stems_in, pieces)]
        chinese = [not piece.isascii() for piece in pieces]
        glosses = [self._stems_in(gloss(piece)) if gloss and other else "" for piece, other in zip(pieces, chinese, strict=True)]
        for tool_id, (begin, name, labels, summary, params) in zip(texts.ids, texts.ends, strict=True):
            # One field that repeats the important places. With a field per place, a word that is rare in one of them would weigh far
            # too much. Positions do not count.
            numbers = texts.numbers[begin:params]
            words = [*map(stems.__getitem__, numbers)]
            lines = {_WORDS: " ".join((*words, *words[: labels - begin], *words[: name - begin]))}
            if others := [*filter(chinese.__getitem__, numbers[: summary - begin])]:
                self._signs[tool_id] = "".join(map(pieces.__getitem__, others))
                lines[_GLOSSES] = " ".join(map(glosses.__getitem__, others))
            yield tantivy.Document(tool=tool_id, **lines)

    def _stems_in(self, text: str) -> str:
        return " ".join(self._analyzer.analyze(" ".join((*words_of(text), *wholes_of(text)))))
