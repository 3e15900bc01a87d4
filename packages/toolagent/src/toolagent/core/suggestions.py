"""Suggestions for misspelt words."""

import difflib
from collections.abc import Collection

__all__ = ["nearest"]


def nearest(word: str, known: Collection[str], limit: int = 3) -> tuple[str, ...]:
    """The known words most similar to this one, best first. Words that contain it, or are contained in it, count too."""
    close = difflib.get_close_matches(word, known, n=limit, cutoff=0.6)
    containing = sorted(candidate for candidate in known if word in candidate or candidate in word)
    return tuple(dict.fromkeys([*close, *containing]))[:limit]
