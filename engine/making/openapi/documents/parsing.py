"""Parses untrusted JSON and YAML into JSON values; refuses input that exceeds the bounds before building it.

For large documents it also runs as a program in the sandbox: `python parsing.py IN OUT`. Therefore it imports nothing of ours.
"""

import json
import math
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, Union

import yaml

Value: TypeAlias = Union[bool, int, float, str, "list[Value]", "dict[str, Value]", None]

MAX_PARTS = 300_000
"""Limit for a document that is read in this process."""
_MAX_PARTS_APART = 2_000_000
_MAX_PARTS_OF_USE = 1_000_000
"""Limit after pruning, because the service holds the document for a while."""
_MAX_DEPTH = 100
_TAG = "tag:yaml.org,2002:"
_NAMES = frozenset(
    {
        "properties", "patternProperties", "dependentSchemas", "definitions", "$defs", "schemas", "paths", "responses", "parameters",
        "headers", "content", "requestBodies", "securitySchemes", "securityDefinitions", "variables", "scopes", "pathItems",
    }
)  # fmt: skip
"""Keywords that map the document's own names to values."""
_DATA = frozenset({"default", "enum", "const"})
_SHOWN = frozenset({"example", "examples", "externalDocs", "callbacks", "links", "webhooks"})
"""Keywords that no tool needs."""


class NotReadable(ValueError):
    """The message says what is wrong with the text."""


def parsed_json(text: str) -> Value:
    """Raises NotReadable. Blocks."""
    try:
        read: Value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise NotReadable(f"It is no JSON: {_first_line(str(error))}") from error
    return read


def parsed_yaml(text: str, most: int = MAX_PARTS) -> Value:
    """Parses one document. Keys become strings; dates stay strings. Raises NotReadable. Blocks."""
    try:
        return _Built(most).of(text)
    except yaml.YAMLError as error:
        raise NotReadable(f"It is no YAML: {_first_line(str(error))}") from error
    except NotReadable:
        raise
    except (ValueError, RecursionError, OverflowError, TypeError) as error:
        raise NotReadable(f"It cannot be read as YAML: {_first_line(str(error))}") from error


class _Scalars(yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
    """Resolves the type of a plain YAML scalar."""

    def __init__(self) -> None:
        yaml.constructor.SafeConstructor.__init__(self)
        yaml.resolver.Resolver.__init__(self)

    def value_of(self, event: yaml.ScalarEvent) -> Value:
        tag = str(event.tag) if event.tag not in (None, "!") else str(self.resolve(yaml.ScalarNode, event.value, event.implicit))  # pyright: ignore[reportUnknownArgumentType] - the library has no types
        node = yaml.ScalarNode(tag, event.value)
        match tag.removeprefix(_TAG):
            case "str" | "timestamp" | "merge" | "value" | "!":
                return str(event.value)
            case "null":
                return None
            case "bool":
                return bool(self.construct_yaml_bool(node))
            case "int":
                return int(self.construct_yaml_int(node))
            case "float":
                return _finite(float(self.construct_yaml_float(node)))
            case other:
                raise NotReadable(f"It holds a {other[:50]}, which JSON has none of.")


@dataclass(slots=True)
class _Open:
    """A list or object that has not ended. `key` waits for its value; `merged` objects supply keys that the object itself lacks."""

    value: "list[Value] | dict[str, Value]"
    anchor: str | None
    size: int = 1
    key: str | None = None
    merges: bool = False
    merged: list[Value] = field(default_factory=list)


class _Built:
    """Builds the value from events and counts its parts on the way: an alias counts like its target."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._scalars = _Scalars()
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Value, int]] = {}
        self._parts = 0
        self._whole: list[Value] = []

    def of(self, text: str) -> Value:
        documents = 0
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise NotReadable("It is no YAML: it holds several documents.")
            self._take(event)
        return self._whole[0] if self._whole else None

    def _take(self, event: yaml.Event) -> None:
        match event:
            case yaml.MappingStartEvent(anchor=anchor):
                self._begin({}, anchor, event.tag, "map")
            case yaml.SequenceStartEvent(anchor=anchor):
                self._begin([], anchor, event.tag, "seq")
            case yaml.CollectionEndEvent():
                self._end()
            case yaml.ScalarEvent(anchor=anchor):
                self._scalar(event, anchor)
            case yaml.AliasEvent(anchor=anchor):
                if any(one.anchor == anchor for one in self._open):
                    raise NotReadable(f"The alias *{anchor} stands for something that it is part of.")
                if anchor not in self._anchors:
                    raise NotReadable(f"It is no YAML: the alias *{anchor} stands for nothing.")
                value, size = self._anchors[anchor]
                self._count(size)
                self._put(value, size)
            case _:
                pass

    def _begin(self, value: "list[Value] | dict[str, Value]", anchor: str | None, tag: str | None, kind: str) -> None:
        if tag not in (None, "!", f"{_TAG}{kind}"):
            raise NotReadable(f"It holds a {str(tag).removeprefix(_TAG)[:50]}, which JSON has none of.")
        if self._open and isinstance(self._open[-1].value, dict) and self._open[-1].key is None and not self._open[-1].merges:
            raise NotReadable("A key is no plain text.")
        self._count(1)
        self._open.append(_Open(value, anchor))
        if len(self._open) > _MAX_DEPTH:
            raise self._too_much()

    def _end(self) -> None:
        done = self._open.pop()
        if done.merged and isinstance(done.value, dict):
            done.value = _merged(done.value, done.merged)
        if done.anchor:
            self._anchors[done.anchor] = (done.value, done.size)
        self._put(done.value, done.size)

    def _scalar(self, event: yaml.ScalarEvent, anchor: str | None) -> None:
        self._count(1)
        here = self._open[-1] if self._open else None
        if here is not None and isinstance(here.value, dict) and here.key is None and not here.merges:
            if event.value == "<<" and event.implicit[0]:
                here.merges = True
            else:
                here.key = _key(self._scalars.value_of(event))
                here.size += 1
            return
        value = self._scalars.value_of(event)
        if anchor:
            self._anchors[anchor] = (value, 1)
        self._put(value, 1)

    def _put(self, value: Value, size: int) -> None:
        if not self._open:
            self._whole.append(value)
            return
        here = self._open[-1]
        here.size += size
        if isinstance(here.value, list):
            here.value.append(value)
        elif here.merges:
            here.merged += value if isinstance(value, list) else [value]
            here.merges = False
        elif here.key is None:
            here.key = _key(value)  # an alias can be one
        else:
            here.value[here.key] = value
            here.key = None

    def _count(self, size: int) -> None:
        self._parts += size
        if self._parts > self._most:
            raise self._too_much()

    def _too_much(self) -> NotReadable:
        return NotReadable(f"It is nested deeper than {_MAX_DEPTH}, or has more than {self._most} parts with its aliases written out.")


def _merged(own: dict[str, Value], others: list[Value]) -> dict[str, Value]:
    """The object's own keys win over merged ones, earlier merged objects over later ones."""
    found: dict[str, Value] = {}
    for one in reversed(others):
        if not isinstance(one, dict):
            raise NotReadable("It is no YAML: `<<` merges what is no mapping.")
        found.update(one)
    return {**found, **own}


def _key(key: Value) -> str:
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


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise NotReadable("It holds a number that JSON has none of (.inf, .nan).")
    return value


def _no_constant(name: str) -> Value:
    raise ValueError(f"{name} is no JSON")


def _first_line(text: str) -> str:
    return " ".join(text.split())[:300]


def _pruned(value: Value, *, is_named: bool = False, depth: int = 0) -> Value:
    """Removes examples and extensions: often most of a document, and no part of a tool."""
    match value:
        case dict():
            return {
                key: inner if key in _DATA and not is_named else _pruned(inner, is_named=not is_named and key in _NAMES, depth=depth + 1)
                for key, inner in value.items()
                if is_named or not (key in _SHOWN or (depth and key.startswith("x-") and key != "x-nullable"))
            }
        case list():
            return [_pruned(one, depth=depth + 1) for one in value]
        case _:
            return value


def _parts_of(value: Value) -> int:
    match value:
        case dict():
            return 1 + sum(1 + _parts_of(inner) for inner in value.values())
        case list():
            return 1 + sum(map(_parts_of, value))
        case _:
            return 1


def _read(text: str, *, is_json: bool) -> Value:
    try:
        found = _pruned(parsed_json(text) if is_json else parsed_yaml(text, _MAX_PARTS_APART))
        count = _parts_of(found)
    except RecursionError as error:
        raise NotReadable("It is nested too deep.") from error
    if count > _MAX_PARTS_OF_USE:
        raise NotReadable(f"It has {count} parts without its examples; at most {_MAX_PARTS_OF_USE} are taken. Split it.")
    return found


def _main(given: Path, out: Path) -> None:
    text = given.read_text(encoding="utf-8-sig")
    try:
        said: dict[str, Value] = {"document": _read(text, is_json=given.name.endswith(".json"))}
    except NotReadable as error:
        said = {"fault": str(error)}
    with out.open("w", encoding="ascii") as file:
        json.dump(said, file, separators=(",", ":"), check_circular=False)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]))
