"""Meanings of texts beside their words: an optional part of the search."""

import importlib
import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

_NEEDS = ("lindera", "numpy", "safetensors", "threadpoolctl", "tokenizers", "wordllama")


@dataclass(frozen=True, slots=True)
class Summaries:
    """The units of what tools do, all in one list: for ten thousand lists the garbage collector would go through all memory."""

    ids: list[str] = field(default_factory=list[str])
    units: list[str] = field(default_factory=list[str])
    ends: list[int] = field(default_factory=list[int])

    def add(self, tool_id: str, units: Iterable[str]) -> None:
        self.ids.append(tool_id)
        self.units.extend(units)
        self.ends.append(len(self.units))


class Meanings(Protocol):
    """Vectors of tools, and a dictionary for Chinese. Not for several threads at once while it is changed."""

    def glosses(self, cut: Iterable[str]) -> Iterable[str]:
        """English words for each Chinese one of a cut text."""
        ...

    def units(self, cut: Iterable[str]) -> Iterable[str]:
        """What a vector is made of: words in small letters, and for Chinese ones their glosses."""
        ...

    def change(self, gone: Iterable[str], new: Summaries) -> None:
        """Forget tools, and take in others."""
        ...

    def search(self, text: str, limit: int) -> list[str]:
        """The ids of tools that mean something alike, the nearest first; those that are far are none."""
        ...


def meanings_here() -> Meanings | None:
    """None where the packages of the extra `meanings` are not installed."""
    if any(importlib.util.find_spec(name) is None for name in _NEEDS):
        return None
    made: Meanings = importlib.import_module("engine.registry.matching.vectors").Vectors()
    return made
