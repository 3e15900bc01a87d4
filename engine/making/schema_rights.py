"""What the schemas of a tool let it have or have written down: files that are named for it, and values that are not masked."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TypeAlias

from pydantic import JsonValue

from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.core.schemas import FILE_PATH, FOLLOWED, MASK, is_secret, mask_secrets, mentions_format, values_of_format, with_defaults

Place: TypeAlias = tuple[str, ...]
"""The names on the way to a value, as a schema has them: of properties, `*` for all others, `[]` for items, `/…/` for a pattern."""

_KINDS = {"properties": "{}", "patternProperties": "/{}/", "additionalProperties": "*", "items": "[]", "prefixItems": "[]"}


def more_files(before: JsonSchema, now: JsonSchema) -> list[str]:
    """Where parameters name files and did not before. Blocks, as all of these: a schema can have ten thousands of parts."""
    return _told({place for place, part in _places(now) if _is_file(part)} - {place for place, part in _places(before) if _is_file(part)})


def unmasked(before: JsonSchema, now: JsonSchema) -> list[str]:
    """Where values were masked and are not any more: their mark is gone, or a name that has none hides one that had."""
    there, here = list(_places(before)), list(_places(now))
    marked = {place for place, part in there if is_secret(part)}
    gone = marked - {place for place, part in here if is_secret(part)}
    named = {place for place, _ in (*there, *here) if _is_named(place)}
    return _told(gone | (_masked(before, named) - _masked(now, named)))


def files_by_default(schema: JsonSchema) -> list[str]:
    """The paths of values that name a file by their default alone."""
    if not mentions_format(schema, FILE_PATH):
        return []
    objects = {place for place, _ in _places(schema) if _is_named(place)}
    filled = (with_defaults(schema, _holding(dict, places)) for places in _by_depth(objects))
    return sorted({path for params in filled for path, _ in values_of_format(schema, params, FILE_PATH)})


def unnamed_files(entries: Iterable[ToolEntry]) -> str:
    """Why these tools are not even tried, in words that a maker can act on; empty when nothing speaks against it.

    A caller's files are handed to a tool that the caller hands them to. The author of a schema must not choose among them.
    """
    found = [(entry.manifest.tool_id, files) for entry in entries if (files := files_by_default(entry.manifest.input_schema))]
    told = "; ".join(f"{', '.join(files)} of {tool_id!r}" for tool_id, files in found)
    return f"A parameter with the format file-path has no default, since only a caller chooses a file: {told}. Take it out." if told else ""


def _places(schema: JsonSchema, at: Place = ()) -> Iterator[tuple[Place, JsonSchema]]:
    """Every part of the schema that speaks of a value of its own or of the same, with where that is."""
    yield at, schema
    for keyword, kind in FOLLOWED.items():
        written = schema.get(keyword)
        for name, part in _parts(written) if kind == "named" else [("", one) for one in _listed(written)]:
            step = (_KINDS[keyword].format(name),) if keyword in _KINDS else ()
            yield from _places(part, (*at, *step))


def _parts(written: JsonValue) -> Iterator[tuple[str, JsonSchema]]:
    if isinstance(written, dict):
        yield from ((name, part) for name, part in written.items() if isinstance(part, dict))


def _listed(written: JsonValue) -> Iterator[JsonSchema]:
    yield from (part for part in (written if isinstance(written, list) else [written]) if isinstance(part, dict))


def _is_file(schema: JsonSchema) -> bool:
    return schema.get("format") == FILE_PATH


def _is_named(place: Place) -> bool:
    return not any(step in ("*", "[]") or (step.startswith("/") and step.endswith("/")) for step in place)


def _masked(schema: JsonSchema, named: set[Place]) -> set[Place]:
    """Those of the places at which a value would be masked, by itself or with what it is in."""
    found: set[Place] = set()
    for places in _by_depth(named):
        masked = mask_secrets(schema, _holding(lambda: "", places))
        found |= {place for place in places if place and _value_at(masked, place) == MASK}
    return found


def _value_at(value: JsonValue, place: Place) -> JsonValue:
    """There, or of what it is in, where that is no object any more."""
    for name in place:
        if not isinstance(value, dict):
            return value
        value = value[name]
    return value


def _by_depth(places: Iterable[Place]) -> Iterator[list[Place]]:
    """Places of one depth can be held at once, one that is in another cannot: a schema is walked for each depth, not for each place."""
    yield from (list(same) for _, same in groupby(sorted(places, key=len), key=len))


def _holding(value: Callable[[], JsonValue], places: Iterable[Place]) -> dict[str, JsonValue]:
    """Parameters that have this value at these places and no other."""
    params: dict[str, JsonValue] = {}
    for place in places:
        inner = params
        for name in place[:-1]:
            there = inner.setdefault(name, {})
            inner = there if isinstance(there, dict) else {}
        if place:
            inner[place[-1]] = value()
    return params


def _told(places: set[Place]) -> list[str]:
    return sorted(".".join(place) or "all of it" for place in places)
