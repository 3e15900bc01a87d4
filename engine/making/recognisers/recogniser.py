"""The type of recognisers, which look at a repository without running any of it."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from engine.making.repositories.trees import Tree
from toolagent.contracts.making import Finding

Recogniser: TypeAlias = Callable[[Tree], Iterable[Finding]]
"""Yields findings, the best first. Raises nothing, whatever the files hold. Blocks."""
