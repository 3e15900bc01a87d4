"""What looks at a repository and says what it is, without running any of it."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from engine.making.trees import Tree
from toolagent.contracts.making import Finding

__all__ = ["Recogniser", "is_aside"]

Recogniser: TypeAlias = Callable[[Tree], Iterable[Finding]]
"""Yields what it found, the best first; whatever the files hold, it raises nothing. Blocks."""

_ASIDE = frozenset({"test", "tests", "testing", "example", "examples", "sample", "samples", "docs", "doc", "demo", "benchmarks", "scripts"})


def is_aside(path: str) -> bool:
    """Whether a file is in a folder for something else than what the repository is for."""
    return any(part.lower() in _ASIDE for part in path.split("/")[:-1])
