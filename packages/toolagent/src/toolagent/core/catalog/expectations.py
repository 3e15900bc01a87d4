"""Compares an output with the expected part of it, so times and ids may differ."""

from collections.abc import Iterator

from pydantic import JsonValue

__all__ = ["unexpected"]


def unexpected(expected: JsonValue, actual: JsonValue, path: str = "$") -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """Each difference: JSON path, expected and actual value; None for a missing one.

    Only the expected keys of an object count, but all items of a list, in order.
    """
    match expected, actual:
        case dict(), dict():
            for key, value in expected.items():
                if key in actual:
                    yield from unexpected(value, actual[key], f"{path}.{key}")
                else:
                    yield f"{path}.{key}", value, None
        case list(), list() if len(expected) == len(actual):
            for index, value in enumerate(expected):
                yield from unexpected(value, actual[index], f"{path}[{index}]")
        case _:
            # In Python, True is 1.
            if expected != actual or isinstance(expected, bool) is not isinstance(actual, bool):
                yield path, expected, actual
