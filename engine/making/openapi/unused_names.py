"""A name that is not taken."""

from collections.abc import Collection
from itertools import chain, count


def unused(name: str, taken: Collection[str]) -> str:
    """The name, numbered where it is taken already."""
    return next(one for one in chain([name], (f"{name}_{number}" for number in count(2))) if one not in taken)
