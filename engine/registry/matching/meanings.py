"""Meanings of texts beside their words: an optional part of the search."""

import importlib
import importlib.util
from collections.abc import Iterable
from typing import Protocol

from engine.registry.matching.texts import CutTexts

_NEEDS = ("lindera", "numpy", "safetensors", "threadpoolctl", "tokenizers", "wordllama")


class Meanings(Protocol):
    """Vectors of tools, and a dictionary for Chinese. Not for several threads at once while it is changed."""

    def gloss(self, piece: str) -> str:
        """English words for a Chinese one; empty for others."""
        ...

    def change(self, gone: Iterable[str], new: CutTexts) -> None:
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
