"""What looks at a repository and says what it is, without running any of it."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from engine.making.trees import Tree
from toolagent.contracts.making import Finding

__all__ = ["Recogniser", "is_aside", "is_example"]

Recogniser: TypeAlias = Callable[[Tree], Iterable[Finding]]
"""Yields what it found, the best first; whatever the files hold, it raises nothing. Blocks."""

_EXAMPLES = frozenset({"test", "tests", "testing", "example", "examples", "sample", "samples", "docs", "doc", "demo", "benchmarks"})
_ASIDE = _EXAMPLES | {"scripts"}


def is_aside(path: str) -> bool:
    """Whether a file is in a folder for something else than what the repository is for."""
    return _is_below(path, _ASIDE)


def is_example(path: str) -> bool:
    """Whether it is in a folder that shows or tries what the repository is for."""
    return _is_below(path, _EXAMPLES)


def _is_below(path: str, names: frozenset[str]) -> bool:
    return any(part.lower() in names for part in path.split("/")[:-1])
