"""YAML that nobody has vouched for, as JSON values: what would grow beyond bounds is refused before it is built."""

import math
from datetime import date

import yaml
from pydantic import JsonValue

__all__ = ["NotReadable", "read_yaml"]

_MAX_PARTS = 300_000
_MAX_DEPTH = 100
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class NotReadable(ValueError):
    """The message says what about the text is wrong."""


def read_yaml(text: str) -> JsonValue:
    """One document. Keys become texts, dates stay as they are written. Raises NotReadable. Blocks."""
    try:
        _insist_on_bounds(text)
        return _json(yaml.load(text, Loader=_Loader))  # noqa: S506 - a safe loader, without what it makes of dates
    except yaml.YAMLError as error:
        raise NotReadable(f"It is no YAML: {_first_line(str(error))}") from error
    except (ValueError, RecursionError, OverflowError, TypeError) as error:
        raise NotReadable(f"It cannot be read as YAML: {_first_line(str(error))}") from error


class _Loader(yaml.CSafeLoader):
    """Of JSON's values only: a date is a text."""

    yaml_implicit_resolvers = {  # pyright: ignore[reportUnannotatedClassAttribute] - the library's own
        first: [(tag, expression) for tag, expression in resolvers if tag != _TIMESTAMP]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


def _insist_on_bounds(text: str) -> None:
    """Raises NotReadable."""
    counted = _Counted()
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        counted.take(event)


class _Counted:
    """How much a document is, in parts: an alias counts as much as what it stands for."""

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._open: list[str | None] = []
        self._counts = [0]

    def take(self, event: yaml.Event) -> None:
        """Raises NotReadable."""
        match event:
            case yaml.CollectionStartEvent(anchor=anchor):
                self._open.append(anchor)
                self._counts.append(1)
            case yaml.CollectionEndEvent():
                self._add(self._counts.pop(), self._open.pop())
            case yaml.ScalarEvent(anchor=anchor):
                self._add(1, anchor)
            case yaml.AliasEvent(anchor=anchor):
                if anchor in self._open:
                    raise NotReadable(f"The alias *{anchor} stands for something that it is part of.")
                self._add(self._sizes.get(anchor or "", 1), None)
            case _:
                pass
        if len(self._counts) > _MAX_DEPTH or sum(self._counts) > _MAX_PARTS:
            raise NotReadable(f"It is nested deeper than {_MAX_DEPTH}, or has more than {_MAX_PARTS} parts with its aliases written out.")

    def _add(self, size: int, anchor: str | None) -> None:
        self._counts[-1] += size
        if anchor:
            self._sizes[anchor] = size


def _json(value: object) -> JsonValue:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if not math.isfinite(value):
                raise NotReadable("It holds a number that JSON has none of (.inf, .nan).")
            return value
        case list():
            return [_json(item) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case dict():
            return {_key(key): _json(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case date():
            return value.isoformat()
        case _:
            raise NotReadable(f"It holds a {type(value).__name__}, which JSON has none of.")


def _key(key: object) -> str:
    """`200:` is a number in YAML, and `on:` a boolean."""
    match key:
        case str():
            return key
        case bool():
            return "true" if key else "false"
        case int() | float():
            return str(key)
        case _:
            raise NotReadable("A key is no plain text.")


def _first_line(text: str) -> str:
    return " ".join(text.split())[:300]
