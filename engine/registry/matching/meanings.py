"""Search by meaning, an optional part."""

import importlib
import importlib.util
from collections.abc import Iterable
from typing import Protocol

from engine.registry.matching.texts import CutTexts

_NEEDS = ("lindera", "numpy", "safetensors", "threadpoolctl", "tokenizers", "wordllama")


class Meanings(Protocol):
    """Vectors of tools, and a dictionary for Chinese. Not thread-safe during changes."""

    def gloss(self, piece: str) -> str:
        """English words for a Chinese word; empty for other words."""
        ...

    def change(self, gone: Iterable[str], new: CutTexts) -> None:
        """Remove tools and add others."""
        ...

    def search(self, text: str, limit: int) -> list[str]:
        """Ids of tools with a similar meaning, the nearest first."""
        ...


def meanings_here() -> Meanings | None:
    """None if the packages of the extra `meanings` are not installed."""
    if any(importlib.util.find_spec(name) is None for name in _NEEDS):
        return None
    made: Meanings = importlib.import_module("engine.registry.matching.vectors").Vectors()
    return made
