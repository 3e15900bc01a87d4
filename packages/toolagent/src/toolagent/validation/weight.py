"""Measures how much there is to check in a value."""

from pydantic import JsonValue

__all__ = ["weight_of"]

_DEPTH = 64
_TEXT = 16
_WORD = 64


def weight_of(value: JsonValue, most: int) -> int:
    """The number of its parts; long texts and numbers count as several. More than `most` if it has more or is nested deeply."""
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
    """On top of the one that everything counts."""
    if isinstance(value, str):
        return len(value) // _TEXT
    # Dividing a long number takes the square of its length.
    return (value.bit_length() // _WORD) ** 2 if isinstance(value, int) else 0
