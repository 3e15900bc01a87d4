"""Compares what schemas give to a tool: files that parameters name, and values that records show unmasked."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TypeAlias

from pydantic import JsonValue

from engine.making.json_values import items, part
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.core.schemas import FILE_PATH, FOLLOWED, MASK, is_secret, mask_secrets, mentions_format, values_of_format, with_defaults

Place: TypeAlias = tuple[str, ...]
"""The way to a value in a schema: names of properties, `*` for all others, `[]` for items, `/…/` for a pattern."""

_KINDS = {"properties": "{}", "patternProperties": "/{}/", "additionalProperties": "*", "items": "[]", "prefixItems": "[]"}


def more_files(before: JsonSchema, now: JsonSchema) -> list[str]:
    """Places where parameters name files and did not before. Blocks, like all functions here: a schema can have 10,000s of parts."""
    there, here = ({place for place, part in _places(schema) if part.get("format") == FILE_PATH} for schema in (before, now))
    return _told(here - there)


def unmasked(before: JsonSchema, now: JsonSchema) -> list[str]:
    """Places whose values were masked before and are not now: the mark is gone, or an unmarked name hides a marked one."""
    there, here = list(_places(before)), list(_places(now))
    marked = {place for place, part in there if is_secret(part)}
    gone = marked - {place for place, part in here if is_secret(part)}
    named = {place for place, _ in (*there, *here) if _is_named(place)}
    return _told(gone | (_masked(before, named) - _masked(now, named)))


def files_by_default(schema: JsonSchema) -> list[str]:
    """The paths of values that name a file only by default."""
    if not mentions_format(schema, FILE_PATH):
        return []
    objects = {place for place, _ in _places(schema) if _is_named(place)}
    filled = (with_defaults(schema, _holding(dict, places)) for places in _by_depth(objects))
    return sorted({path for params in filled for path, _ in values_of_format(schema, params, FILE_PATH)})


def unnamed_files(entries: Iterable[ToolEntry]) -> str:
    """Why the tools must not be tried, in words that a maker can act on; empty if nothing speaks against it.

    Only the caller chooses the files that a tool gets. A default in a schema would choose for the caller.
    """
    found = [(entry.manifest.tool_id, files) for entry in entries if (files := files_by_default(entry.manifest.input_schema))]
    told = "; ".join(f"{', '.join(files)} of {tool_id!r}" for tool_id, files in found)
    return f"A parameter with the format file-path has no default, since only a caller chooses a file: {told}. Take it out." if told else ""


def _places(schema: JsonSchema, at: Place = ()) -> Iterator[tuple[Place, JsonSchema]]:
    """Every part of the schema, with the place of the value that it describes."""
    yield at, schema
    for keyword, kind in FOLLOWED.items():
        written = schema.get(keyword)
        for name, inner in part(written).items() if kind == "named" else [("", one) for one in items(written) or [written]]:
            if isinstance(inner, dict):
                step = (_KINDS[keyword].format(name),) if keyword in _KINDS else ()
                yield from _places(inner, (*at, *step))


def _is_named(place: Place) -> bool:
    return not any(step in ("*", "[]") or (step.startswith("/") and step.endswith("/")) for step in place)


def _masked(schema: JsonSchema, named: set[Place]) -> set[Place]:
    """The places whose value would be masked, by itself or with an outer value."""
    found: set[Place] = set()
    for places in _by_depth(named):
        masked = mask_secrets(schema, _holding(lambda: "", places))
        found |= {place for place in places if place and _value_at(masked, place) == MASK}
    return found


def _value_at(value: JsonValue, place: Place) -> JsonValue:
    """The value at the place, or the outer value that is no object any more."""
    for name in place:
        if not isinstance(value, dict):
            return value
        value = value[name]
    return value


def _by_depth(places: Iterable[Place]) -> Iterator[list[Place]]:
    """Groups places by depth. Places of one depth fit into one value, so the schema is walked once for each depth."""
    yield from (list(same) for _, same in groupby(sorted(places, key=len), key=len))


def _holding(value: Callable[[], JsonValue], places: Iterable[Place]) -> dict[str, JsonValue]:
    """Parameters with this value at these places, and nothing else."""
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
