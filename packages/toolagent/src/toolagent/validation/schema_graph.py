"""How a checker walks along a schema: which parts look at the same value, and which look inside it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import unquote

from pydantic import JsonValue

from toolagent.contracts.contract import JsonSchema

__all__ = ["Fork", "Item", "Label", "Name", "Part", "Unresolved", "inside", "may_meet", "meet", "parts_of", "same"]

_DATA = frozenset({"default", "examples", "enum", "const"})
_THEN: JsonValue = {"type": "null"}
_ELSE: JsonValue = {"type": "boolean"}
"""Stand for the conditions of `then` and `else`, which exclude each other."""

_EVERYTHING = frozenset({"", ".*", "^.*$", "^", "$"})


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a schema and its JSON path in it."""

    schema: JsonSchema
    path: str


class Unresolved(Exception):
    """A reference that is not followed here, such as one to an `$id`."""


@dataclass(frozen=True, slots=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True)
class Pattern:
    pattern: str


@dataclass(frozen=True, slots=True)
class Other:
    """Every property except those with these names and those that match these patterns."""

    names: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Item:
    """Items of an array from `first` to `end`, which is excluded."""

    first: int = 0
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """The name of a property, as a value."""


Label: TypeAlias = Name | Pattern | Other | Item | Key


@dataclass(frozen=True, slots=True)
class Fork:
    """One of several branches of a choice. `choice` is the identity of the choice."""

    choice: int
    branch: JsonValue
    index: int


def parts_of(value: JsonValue) -> Iterator[JsonSchema]:
    """Every object in a schema that may be a schema. Without recursion, because a schema may be deep."""
    waiting: list[JsonValue] = [value]
    while waiting:
        match waiting.pop():
            case dict() as part:
                yield part
                waiting.extend(inner for keyword, inner in part.items() if keyword not in _DATA)
            case list() as items:
                waiting.extend(items)
            case _:
                pass


def same(root: JsonSchema, part: Part) -> Iterator[tuple[Part, Fork | None]]:
    """The parts that look at the same value. Raises Unresolved."""
    schema, path = part.schema, part.path
    for keyword in ("$ref", "$dynamicRef"):
        if isinstance(reference := schema.get(keyword), str) and (target := _target(root, reference)) is not None:
            yield target, None
    for keyword in ("allOf", "anyOf", "oneOf"):
        branches = schema.get(keyword)
        for inner, index in _listed(branches):
            yield Part(inner, f"{path}.{keyword}[{index}]"), None if keyword == "allOf" else Fork(id(branches), inner, index)
    # `if` is always looked at; only one of `then` and `else` is.
    forks = {"not": None, "if": None, "then": Fork(id(schema), _THEN, 0), "else": Fork(id(schema), _ELSE, 1)}
    for keyword, fork in forks.items():
        if isinstance(inner := schema.get(keyword), dict):
            yield Part(inner, f"{path}.{keyword}"), fork
    for name, inner in _named(schema, "dependentSchemas"):
        yield Part(inner, f"{path}.dependentSchemas.{name}"), None


def inside(part: Part) -> Iterator[tuple[Label, Part]]:
    """The parts that look inside the value, with the labels of the places they look at."""
    schema, path = part.schema, part.path
    for name, inner in _named(schema, "properties"):
        yield Name(name), Part(inner, f"{path}.properties.{name}")
    for pattern, inner in _named(schema, "patternProperties"):
        yield Other() if pattern in _EVERYTHING else Pattern(pattern), Part(inner, f"{path}.patternProperties.{pattern}")
    names, patterns = (schema.get(keyword) for keyword in ("properties", "patternProperties"))
    others = Other(frozenset(names if isinstance(names, dict) else ()), frozenset(patterns if isinstance(patterns, dict) else ()))
    prefix = schema.get("prefixItems")
    items = prefix if isinstance(prefix, list) else []
    for item, index in _listed(prefix):
        yield Item(index, index + 1), Part(item, f"{path}.prefixItems[{index}]")
    rest: Mapping[str, Label] = {
        "additionalProperties": others,
        "unevaluatedProperties": others,
        "items": Item(len(items)),
        "unevaluatedItems": Item(len(items)),
        "contains": Item(),
        "propertyNames": Key(),
    }
    for keyword, label in rest.items():
        if isinstance(inner := schema.get(keyword), dict):
            yield label, Part(inner, f"{path}.{keyword}")


def meet(one: Label, other: Label) -> bool:
    """Whether both surely have a place in common."""
    match one, other:
        case (Item(), Item()):
            return max(one.first, other.first) < min(_end(one), _end(other))
        case (Name(), Name()) | (Pattern(), Pattern()) | (Key(), Key()):
            return one == other
        case (Name(name), Pattern(pattern)) | (Pattern(pattern), Name(name)):
            return _matches(pattern, name) is True
        case (Name(name), Other(names, patterns)) | (Other(names, patterns), Name(name)):
            return name not in names and all(_matches(pattern, name) is False for pattern in patterns)
        case (Other(), Other()):
            return not one.patterns and not other.patterns
        case _:
            return False


def may_meet(one: Label, other: Label) -> bool:
    """Whether both may have a place in common."""
    match one, other:
        case (Pattern(), Pattern()) | (Other(), Other()):
            return True
        case (Name(name), Pattern(pattern)) | (Pattern(pattern), Name(name)):
            return _matches(pattern, name) is not False
        case (Name(name), Other(names, patterns)) | (Other(names, patterns), Name(name)):
            return name not in names and not any(_matches(pattern, name) for pattern in patterns)
        case (Pattern(pattern), Other(_, patterns)) | (Other(_, patterns), Pattern(pattern)):
            return pattern not in patterns
        case _:
            return meet(one, other)


def _end(item: Item) -> float:
    return float("inf") if item.end is None else item.end


@lru_cache(maxsize=4096)
def _matches(pattern: str, name: str) -> bool | None:
    """None if unknown: only plain patterns are tried here, because a pattern may come from a stranger."""
    if not re.fullmatch(r"\^?[\w\-./: ]*\$?", pattern, re.ASCII):
        return None
    return re.search(pattern.replace(".", r"[^\n]"), name) is not None


def _named(schema: JsonSchema, keyword: str) -> Iterator[tuple[str, JsonSchema]]:
    held = schema.get(keyword)
    if isinstance(held, dict):
        yield from ((name, inner) for name, inner in held.items() if isinstance(inner, dict))


def _listed(held: JsonValue) -> Iterator[tuple[JsonSchema, int]]:
    if isinstance(held, list):
        yield from ((inner, index) for index, inner in enumerate(held) if isinstance(inner, dict))


def _target(root: JsonSchema, reference: str) -> Part | None:
    """The part that a reference names; None if it has no parts. Raises Unresolved."""
    own = root.get("$id")
    pointer = reference.removeprefix(own) if isinstance(own, str) else reference
    if pointer in ("", "#"):
        return Part(root, "$")
    if not pointer.startswith("#/"):
        return _anchored(root, pointer)
    found, path = root, "$"
    for step in pointer.split("/")[1:]:
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        inner = _step(found, key)
        if inner is None:
            raise Unresolved(reference)
        found, path = inner, f"{path}[{key}]" if isinstance(found, list) else f"{path}.{key}"
    return Part(found, path) if isinstance(found, dict) else None


def _step(value: JsonValue, key: str) -> JsonValue:
    match value:
        case dict():
            return value.get(key)
        case list() if key.isdecimal() and int(key) < len(value):
            return value[int(key)]
        case _:
            return None


def _anchored(root: JsonSchema, reference: str) -> Part:
    named = [part for part in parts_of(root) if reference in (f"#{part.get('$anchor')}", f"#{part.get('$dynamicAnchor')}")]
    if len(named) != 1:
        raise Unresolved(reference)
    return Part(named[0], "$" if named[0] is root else f"$ (#{reference.removeprefix('#')})")
