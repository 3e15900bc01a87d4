"""Whether what users would accept is found."""

from collections.abc import Iterable, Sequence

from bench.search.catalog import Query
from engine.registry.matching.ranking import Ranking
from engine.registry.matching.texts import Filters


def recall(ranking: Ranking, queries: Sequence[Query], among: int) -> float:
    """The share of queries with an accepted tool among the first."""
    return 1 - len([*missed(ranking, queries, among)]) / len(queries)


def missed(ranking: Ranking, queries: Iterable[Query], among: int) -> Iterable[Query]:
    return (query for query in queries if not query.tools & set(ranking.search(query.need, Filters())[:among]))
