"""Search over many tools: ours with words alone, and with meanings, in turns with the library bare."""

import statistics
import subprocess
import sys
from collections.abc import Mapping

from pydantic import TypeAdapter

from bench.processes import NotReadyError, bare_environment
from bench.results import Single
from bench.service import ROOT

_WAYS: Mapping[str, str] = {"bare": "Tantivy bare", "words": "words (BM25)", "both": "words and meanings"}
_FIGURES: Mapping[str, tuple[str, str]] = {
    "p50": ("search, p50", "ms"),
    "p95": ("search, p95", "ms"),
    "load": ("loaded once by a process before it builds: tokens, vectors of words, dictionary, CPU", "ms"),
    "build": ("index built, CPU", "ms"),
    "memory": ("resident more for the index", "MiB"),
    "recall": ("recall@5 of the labelled queries", "%"),
    "named": ("exact ids and names that come first", "%"),
}
_READ = TypeAdapter(dict[str, float])


def measure_search(size: int, turns: int, rounds: int) -> list[Single]:
    """Medians of the turns; each way in a new process each time. Raises NotReadyError."""
    took: dict[str, list[dict[str, float]]] = {way: [] for way in _WAYS}
    for _ in range(turns):
        for way, figures in took.items():
            figures.append(_taken(way, size, rounds))
    return [
        Single(
            name=f"search.{figure}.{way}",
            label=f"{label}, {size:,} tools: {of_way}",
            value=statistics.median(one[figure] for one in took[way]),
            unit=unit,
        )
        for figure, (label, unit) in _FIGURES.items()
        for way, of_way in _WAYS.items()
    ]


def _taken(way: str, size: int, rounds: int) -> dict[str, float]:
    command = (sys.executable, "-m", "bench.search.one", way, str(size), str(rounds))
    done = subprocess.run(command, cwd=ROOT, env=bare_environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotReadyError(f"{way}: {done.stderr[-500:]}")
    return _READ.validate_json(done.stdout)
