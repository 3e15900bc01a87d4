"""`python -m bench.search.strangers FOLDER [SIZE]`: recall over the tools and queries of MetaTool, of a clone in a folder; prints a table.

Nobody here wrote them: the plug-ins of a store with their own descriptions, and what others asked of each, with one tool as the answer.
"""

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.search.distractors import distractors
from bench.search.one import Search, bare
from engine.registry.matching.meanings import meanings_here
from engine.registry.matching.ranking import Ranking
from engine.registry.matching.texts import Filters
from toolagent.contracts.manifest import ToolManifest


def main(folder: Path, size: int) -> None:
    """Those tools, filled up with distractors to the size."""
    described: dict[str, str] = json.loads((folder / "dataset/plugin_des.json").read_text("utf-8"))
    with (folder / "dataset/data/all_clean_data.csv").open(encoding="utf-8", newline="") as file:
        queries = [(row["Query"], row["Tool"]) for row in csv.DictReader(file)]
    tools = [ToolManifest(tool_id=f"plugin_{at}", name=name, description=says) for at, (name, says) in enumerate(described.items())]
    ids = {tool.name: tool.tool_id for tool in tools}
    tools += distractors(max(size - len(tools), 0))
    print(f"| {len(queries):,} queries, {len(tools):,} tools | recall@1 | recall@5 | nothing found |\n|---|---:|---:|---:|")  # noqa: T201
    for way, search in _ways(tools).items():
        ranks = [_rank(search(query), ids[tool]) for query, tool in queries]
        first, fifth = (100 * sum(rank < among for rank in ranks) / len(ranks) for among in (1, 5))
        print(f"| {way} | {first:.1f} % | {fifth:.1f} % | {ranks.count(_NOTHING)} |")  # noqa: T201


_NOWHERE, _NOTHING = 10_000, 10_001


def _rank(found: Sequence[str], wanted: str) -> int:
    if not found:
        return _NOTHING
    return found.index(wanted) if wanted in found else _NOWHERE


def _ways(tools: Sequence[ToolManifest]) -> Mapping[str, Search]:
    words, both = Ranking(), Ranking(meanings_here())
    for ranking in (words, both):
        ranking.change((), tools)
    return {
        "Tantivy bare": bare(tools),
        "words (BM25)": lambda need: words.search(need, Filters()),
        "words and meanings": lambda need: both.search(need, Filters()),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 0)
