"""How much there is to walk through in a value."""

from pydantic import JsonValue

__all__ = ["weight_of"]

_DEPTH = 64
_TEXT = 16
_WORD = 64


def weight_of(value: JsonValue, most: int) -> int:
    """The number of parts to check; long texts and numbers count several times. More than `most` also for a value that is nested deeply."""
    weight = 0
    level: list[JsonValue] = [value]
    for _ in range(_DEPTH):
        deeper: list[JsonValue] = []
        for part in level:
            if isinstance(part, dict):
                weight += sum(1 + len(key) // _TEXT for key in part)
                deeper += part.values()
            elif isinstance(part, list):
                deeper += part
            else:
                weight += _of_one(part)
        weight += len(level)
        if weight + len(deeper) > most:
            return most + 1
        if not deeper:
            return weight
        level = deeper
    return most + 1


def _of_one(value: str | float | None) -> int:
    """The weight of one part, in addition to 1."""
    if isinstance(value, str):
        return len(value) // _TEXT
    # The time of a division grows with the square of the number's length.
    return (value.bit_length() // _WORD) ** 2 if isinstance(value, int) else 0
