"""Comparing what came with what an example expects: a part of it, so that times and ids may differ."""

from collections.abc import Iterator

from pydantic import JsonValue

__all__ = ["unexpected"]


def unexpected(expected: JsonValue, actual: JsonValue, path: str = "$") -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """Every place where something else came than was expected: its JSON path, and both; None for what is missing.

    Of an object only the expected keys count; of a list all items, in order.
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
