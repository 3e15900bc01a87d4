"""Reads JSON values whose types are not known."""

from collections.abc import Mapping

from pydantic import JsonValue

Part = Mapping[str, JsonValue]
"""An object of a document."""


def part(value: JsonValue) -> Part:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: JsonValue) -> list[JsonValue]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def texts(value: JsonValue) -> list[str]:
    """The strings of a list; a single string counts as a list of one."""
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
