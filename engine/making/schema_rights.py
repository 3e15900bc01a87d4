"""What the schemas of a tool let it have or have written down: files that are named for it, and values that are not masked."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from pydantic import JsonValue

from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.manifest import JsonSchema
from toolagent.core.schemas import FILE_PATH, FOLLOWED, mask_secrets, values_of_format, with_defaults

__all__ = ["files_by_default", "more_files", "unmasked", "unnamed_files"]

Place: TypeAlias = tuple[str, ...]
"""The names on the way to a value, as a schema has them: of properties, `*` for all others, `[]` for items, `/…/` for a pattern."""

_KINDS = {"properties": "{}", "patternProperties": "/{}/", "additionalProperties": "*", "items": "[]", "prefixItems": "[]"}


def more_files(before: JsonSchema, now: JsonSchema) -> list[str]:
    """Where parameters name files and did not before."""
    return _told({place for place, part in _places(now) if _is_file(part)} - {place for place, part in _places(before) if _is_file(part)})


def unmasked(before: JsonSchema, now: JsonSchema) -> list[str]:
    """Where values were masked and are not any more: their mark is gone, or a name that has none hides one that had."""
    marked = {place for place, part in _places(before) if _is_secret(part)}
    gone = marked - {place for place, part in _places(now) if _is_secret(part)}
    named = {place for schema in (before, now) for place, _ in _places(schema) if _is_named(place)}
    return _told(gone | {place for place in named if _is_masked(before, place) and not _is_masked(now, place)})


def files_by_default(schema: JsonSchema) -> list[str]:
    """The paths of values that name a file although nobody named it: their default does."""
    objects = {place for place, _ in _places(schema) if _is_named(place)}
    filled = (with_defaults(schema, _holding({}, place)) for place in objects)
    return sorted({path for params in filled for path, _ in values_of_format(schema, params, FILE_PATH)})


def unnamed_files(entries: Iterable[ToolEntry]) -> str:
    """Why these tools are not even tried, in words that a maker can act on; empty when nothing speaks against it.

    A caller's files are handed to a tool that the caller hands them to. Whoever writes a schema must not choose among them.
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


def _is_secret(schema: JsonSchema) -> bool:
    return schema.get("writeOnly") is True or schema.get("format") == "password"


def _is_named(place: Place) -> bool:
    return not any(step in ("*", "[]") or (step.startswith("/") and step.endswith("/")) for step in place)


def _is_masked(schema: JsonSchema, place: Place) -> bool:
    probe = _holding("", place)
    return mask_secrets(schema, probe) != probe


def _holding(value: JsonValue, place: Place) -> dict[str, JsonValue]:
    """Parameters that have this value there and no other."""
    for name in reversed(place):
        value = {name: value}
    return value if isinstance(value, dict) else {}


def _told(places: set[Place]) -> list[str]:
    return sorted(".".join(place) or "all of it" for place in places)
