"""The losses of a new schema against an old one: contracts grow, and never change meaning."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from pydantic import JsonValue

from tests.contracts.wire import Schema

__all__ = ["contains", "losses"]

_LEAST = ("minimum", "exclusiveMinimum", "minLength", "minItems")
_MOST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems")
_FORM = ("type", "format", "pattern")
_NOTHING: JsonValue = {"nothing": "of this kind"}

Definitions = Mapping[str, Schema]


def losses(old: Definitions, new: Definitions) -> list[str]:
    """What was renamed, retyped, removed or narrowed, as `Model.field: what`. New models, fields with defaults, and new values are no
    losses.
    """
    gone = [f"{name}: removed" for name in old if name not in new]
    return gone + [loss for name in old if name in new for loss in _Comparison(old, new).of(old[name], new[name], name)]


def contains(whole: JsonValue, part: JsonValue) -> bool:
    """Whether everything in `part` is in `whole`, at the same place with the same value; objects of `whole` may have more."""
    match whole, part:
        case dict(), dict():
            return all(key in whole and contains(whole[key], value) for key, value in part.items())
        case list(), list():
            return len(whole) == len(part) and all(map(contains, whole, part))
        case _:
            return whole == part


class _Comparison:
    def __init__(self, old: Definitions, new: Definitions) -> None:
        self._old = old
        self._new = new

    def of(self, old: Schema, new: Schema, at: str) -> Iterator[str]:
        if "$ref" in old and old.get("$ref") == new.get("$ref"):
            return  # compared under its own name
        old, new = _resolved(old, self._old), _resolved(new, self._new)
        if "anyOf" in old or "oneOf" in old or "anyOf" in new or "oneOf" in new:
            yield from self._of_unions(_branches(old), _branches(new), at)
            return
        yield from (f"{at}: {key} was {old.get(key)!r}, is {new.get(key)!r}" for key in _FORM if old.get(key) != new.get(key))
        yield from _of_values(old, new, at)
        yield from _of_limits(old, new, at)
        yield from self._of_properties(old, new, at)
        for key in ("items", "additionalProperties"):
            yield from self._of_parts(old.get(key), new.get(key), f"{at}[]")

    def _of_unions(self, old: Sequence[Schema], new: Sequence[Schema], at: str) -> Iterator[str]:
        """A union may grow, but must still accept each of its old members."""
        for member in old:
            found = [list(self.of(member, candidate, at)) for candidate in new]
            if not any(faults == [] for faults in found):
                yield from min(found, key=len)

    def _of_properties(self, old: Schema, new: Schema, at: str) -> Iterator[str]:
        before, after = _object(old.get("properties")), _object(new.get("properties"))
        yield from (f"{at}.{name}: removed" for name in before if name not in after)
        needed, was_needed = _names(new.get("required")), _names(old.get("required"))
        yield from (f"{at}.{name}: must be given now" for name in needed if name not in was_needed)
        for name in before.keys() & after.keys():
            was, now = cast("Schema", before[name]), cast("Schema", after[name])
            default = was.get("default", _NOTHING)
            if default != _NOTHING and not contains(now.get("default", _NOTHING), default):
                yield f"{at}.{name}: the default was {default!r}, is {now.get('default')!r}"
            yield from self.of(was, now, f"{at}.{name}")

    def _of_parts(self, old: JsonValue, new: JsonValue, at: str) -> Iterator[str]:
        if isinstance(old, dict) and isinstance(new, dict):
            yield from self.of(old, new, at)
        elif (old in (None, True)) != (new in (None, True)):
            yield f"{at}: was {old!r}, is {new!r}"


def _of_values(old: Schema, new: Schema, at: str) -> Iterator[str]:
    before, after = _values(old), _values(new)
    if before is None and after is not None:
        yield f"{at}: only {after} now"
    elif after is not None:
        yield from (f"{at}: {value!r} is no longer a value" for value in before or () if value not in after)


def _of_limits(old: Schema, new: Schema, at: str) -> Iterator[str]:
    for keys, sign in ((_LEAST, 1), (_MOST, -1)):
        for key in keys:
            was, now = old.get(key), new.get(key)
            if isinstance(now, int | float) and (not isinstance(was, int | float) or sign * now > sign * was):
                yield f"{at}: {key} was {was}, is {now}"


def _resolved(schema: Schema, definitions: Definitions) -> Schema:
    reference = schema.get("$ref")
    return definitions[reference.removeprefix("#/$defs/")] if isinstance(reference, str) else schema


def _branches(schema: Schema) -> Sequence[Schema]:
    members = schema.get("anyOf", schema.get("oneOf"))
    return cast("list[Schema]", members) if isinstance(members, list) else [schema]


def _values(schema: Schema) -> list[JsonValue] | None:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else None


def _object(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _names(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
