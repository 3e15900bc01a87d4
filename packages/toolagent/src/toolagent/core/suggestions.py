"""What somebody probably meant."""

import difflib
from collections.abc import Collection

__all__ = ["nearest"]


def nearest(word: str, known: Collection[str], limit: int = 3) -> tuple[str, ...]:
    """The known ids most like the word, best first; those that contain it, or are contained in it, count as near."""
    close = difflib.get_close_matches(word, known, n=limit, cutoff=0.6)
    containing = sorted(candidate for candidate in known if word in candidate or candidate in word)
    return tuple(dict.fromkeys([*close, *containing]))[:limit]
