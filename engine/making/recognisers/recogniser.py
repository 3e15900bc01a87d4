"""What looks at a repository and says what it is, without running any of it."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from engine.making.repositories.trees import Tree
from toolagent.contracts.making import Finding

Recogniser: TypeAlias = Callable[[Tree], Iterable[Finding]]
"""Yields what it found, the best first; whatever the files hold, it raises nothing. Blocks."""
