"""`python -m bench.search.one WAY SIZE ROUNDS`: one way of searching, with a process and memory of its own; prints JSON."""

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import psutil
import rjieba
import tantivy

from bench.search.catalog import Query, entries, labelled, tools_asked_for
from engine.registry.matching.meanings import meanings_here
from engine.registry.matching.ranking import MOST_FOUND, Ranking
from engine.registry.matching.texts import Filters, text_of
from toolagent.contracts.manifest import ToolManifest

Search = Callable[[str], list[str]]

AMONG = 5


def main(way: str, size: int, rounds: int) -> dict[str, float]:
    """Milliseconds, MiB, shares in percent."""
    tools, queries = [entry.manifest for entry in entries(size)], labelled()
    # The library loads its dictionary with the first word; that is no part of an index.
    rjieba.cut("字")
    # Time of the processor: half of it is used by threads of libraries, for which others on the machine leave more or less room.
    before, begin = _resident(), time.process_time()
    meanings = meanings_here() if way == "both" else None
    loaded = time.process_time()
    search = bare(tools) if way == "bare" else _searching(Ranking(meanings), tools)
    built = time.process_time()
    figures = {"load": (loaded - begin) * 1000, "build": (built - loaded) * 1000, "memory": _resident() - before}
    named = [(asked, tool.tool_id) for tool in tools_asked_for() for asked in (tool.name, tool.tool_id)]
    figures["p50"], figures["p95"] = _times(search, queries, rounds)
    figures["recall"] = 100 * sum(bool(query.tools & {*search(query.need)[:AMONG]}) for query in queries) / len(queries)
    figures["named"] = 100 * sum(search(asked)[:1] == [tool_id] for asked, tool_id in named) / len(named)
    return figures


def bare(tools: Sequence[ToolManifest]) -> Search:
    """Tantivy and the cutting of words as their pages show them: one field, every word may occur."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("tool", stored=True, tokenizer_name="raw")
    builder.add_text_field("words", tokenizer_name="whitespace")
    schema = builder.build()
    index = tantivy.Index(schema)
    writer = index.writer(15_000_000, 1)
    for tool in tools:
        text = text_of(tool)
        words = " ".join((text.name, text.tool_id, text.tags, text.description, text.params))
        writer.add_document(tantivy.Document(tool=tool.tool_id, words=" ".join(rjieba.cut_for_search(words.lower()))))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(need: str) -> list[str]:
        terms = [tantivy.Query.term_query(schema, "words", word) for word in rjieba.cut_for_search(need.lower()) if word.strip()]
        hits = searcher.search(tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms]), MOST_FOUND).hits
        return [str(searcher.doc(address)["tool"][0]) for _, address in hits]

    return search


def _searching(ranking: Ranking, tools: Sequence[ToolManifest]) -> Search:
    ranking.change((), tools)
    return lambda need: ranking.search(need, Filters())


def _times(search: Search, queries: Sequence[Query], rounds: int) -> tuple[float, float]:
    took: list[float] = []
    for at in range(rounds + 1):
        for query in queries:
            begin = time.perf_counter()
            search(query.need)
            # The first round warms.
            took += [(time.perf_counter() - begin) * 1000] if at else []
    return statistics.median(took), statistics.quantiles(took, n=20)[-1]


def _resident() -> float:
    return psutil.Process().memory_info().rss / 2**20


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))  # noqa: T201 - what the bench reads
