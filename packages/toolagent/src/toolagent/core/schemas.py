"""Defaults, file paths and secrets that follow from a JSON Schema."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field, JsonValue, TypeAdapter, ValidationError
from pydantic_core import SchemaError

from toolagent.contracts.contract import JsonSchema

__all__ = [
    "FILE_PATH",
    "FOLLOWED",
    "MASK",
    "has_meaning",
    "is_secret",
    "kind_of",
    "map_values",
    "mask_secrets",
    "mentions",
    "mentions_format",
    "mentions_secrets",
    "secret_values",
    "text_of",
    "values_of_format",
    "with_defaults",
]

FILE_PATH = "file-path"
"""The `format` of strings that name a file. JSON Schema allows own formats."""

MASK = "***"

FOLLOWED: Mapping[str, Literal["one", "list", "named"]] = {
    "properties": "named",
    "patternProperties": "named",
    "additionalProperties": "one",
    "prefixItems": "list",
    "items": "one",
    "allOf": "list",
    "anyOf": "list",
    "oneOf": "list",
    "if": "one",
    "then": "one",
    "else": "one",
    "dependentSchemas": "named",
}
"""The keywords whose schemas are followed: each holds one schema, a list, or several by name."""

_SAME_VALUE = frozenset({"allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas"})


def kind_of(value: JsonValue) -> str:
    """The JSON type of a value, as a schema names it."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"


def with_defaults(schema: JsonSchema, params: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The parameters with all defaults of the schema filled in, also inside existing objects.

    Follows `properties` and `allOf`; other keywords may not apply. A default null that the schema does not allow is ignored: servers in
    Python write it (`author: str = None`) for optional values.
    """
    filled = dict(params)
    for name, property_schema in _objects(schema.get("properties")):
        if name not in filled and "default" in property_schema and _may_be_default(property_schema):
            filled[name] = property_schema["default"]
        value = filled.get(name)
        if isinstance(value, dict):
            filled[name] = with_defaults(property_schema, value)
    for branch in _schemas(schema.get("allOf")):
        filled = with_defaults(branch, filled)
    return filled


def _may_be_default(schema: JsonSchema) -> bool:
    return schema["default"] is not None or _allows_null(schema)


def _allows_null(schema: JsonValue) -> bool:
    """By type, enum, const and branches. A schema without these allows null."""
    if not isinstance(schema, dict):
        return schema is not False
    types, listed = schema.get("type", "null"), schema.get("enum")
    if types != "null" and not (isinstance(types, list) and "null" in types):
        return False
    if schema.get("const") is not None or (isinstance(listed, list) and None not in listed):
        return False
    choices = (branches for keyword in ("anyOf", "oneOf") if isinstance(branches := schema.get(keyword), list))
    return all(any(map(_allows_null, branches)) for branches in choices)


def values_of_format(schema: JsonSchema, value: JsonValue, name: str) -> Iterator[tuple[str, str]]:
    """Every string in the value whose schema has that `format`, with its JSON path."""
    if not mentions_format(schema, name):
        return  # walking a value of megabytes takes seconds
    found: dict[tuple[str, str], None] = {}

    def note(path: str, text: str, schema: JsonSchema) -> str:
        if schema.get("format") == name:
            found[path, text] = None
        return text

    map_values(schema, value, note)
    yield from found


def mentions_format(schema: JsonValue, name: str) -> bool:
    """Whether any part of the schema has that `format`. The schema must not change later."""
    return _mentions_format(_Identity(schema), name)


def mentions_secrets(schema: JsonValue) -> bool:
    """Whether any part of the schema describes a secret. The schema must not change later."""
    return _mentions_secrets(_Identity(schema))


def text_of(schema: JsonSchema) -> str:
    """The schema as JSON with sorted names. The schema must not change later."""
    return _text(_Identity(schema))


class _Identity:
    """A key for caches: equal by identity only. Each call asks about the schemas of its tool, and walking them is slow."""

    __slots__ = ("schema",)

    def __init__(self, schema: JsonValue) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.schema is self.schema


@lru_cache(1024)
def _mentions_format(of: _Identity, name: str) -> bool:
    return mentions(of.schema, lambda part: part.get("format") == name)


@lru_cache(1024)
def _text(of: _Identity) -> str:
    return json.dumps(of.schema, sort_keys=True)


@lru_cache(1024)
def _mentions_secrets(of: _Identity) -> bool:
    return mentions(of.schema, is_secret)


def mentions(schema: JsonValue, is_meant: Callable[[JsonSchema], bool]) -> bool:
    """Whether any part of the schema fulfils the condition."""
    match schema:
        case dict():
            return is_meant(schema) or any(mentions(part, is_meant) for part in schema.values())
        case list():
            return any(mentions(part, is_meant) for part in schema)
        case _:
            return False


def has_meaning(schema: JsonSchema) -> bool:
    """Whether this part of a schema describes a file or a secret."""
    return schema.get("format") == FILE_PATH or is_secret(schema)


def mask_secrets(schema: JsonSchema, params: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The parameters, with values masked whose schema has `writeOnly` or `format: password`."""
    return _masked(schema, params)[0]


def secret_values(schema: JsonSchema, params: dict[str, JsonValue]) -> list[JsonValue]:
    """The values that `mask_secrets` masks."""
    return _masked(schema, params)[1]


def _masked(schema: JsonSchema, params: dict[str, JsonValue]) -> tuple[dict[str, JsonValue], list[JsonValue]]:
    if not mentions_secrets(schema):
        return params, []  # with many names and patterns, walking takes seconds
    found: list[JsonValue] = []

    def mask(_path: str, value: JsonValue, schema: JsonSchema) -> JsonValue:
        if not is_secret(schema):
            return value
        found.append(value)
        return MASK

    # If all params are secret, each is masked, because the params of a record are an object.
    whole = [schema, *_branches(schema)]
    if any(map(is_secret, whole)):
        return dict.fromkeys(params, MASK), [*params.values()]
    masked = _map([schema], params, mask, "$")
    return masked if isinstance(masked, dict) else {}, found


def map_values(schema: JsonSchema, value: JsonValue, change: Callable[[str, str, JsonSchema], str]) -> JsonValue:
    """The value with each string that the schema describes replaced by `change(path, string, its schema)`, at most once.

    Follows the keywords in `FOLLOWED`, whether or not the value fits a branch; expand references first.
    """

    def change_text(path: str, value: JsonValue, schema: JsonSchema) -> JsonValue:
        return change(path, value, schema) if isinstance(value, str) else value

    return _map([schema], value, change_text, "$")


def _map(schemas: list[JsonSchema], value: JsonValue, change: Callable[[str, JsonValue, JsonSchema], JsonValue], path: str) -> JsonValue:
    """`schemas` are all that apply to the value. The recursion is no deeper than they are, because each step takes a part of them."""
    applicable = [part for schema in schemas for part in (schema, *_branches(schema))]
    if not any(applicable):
        return value
    for schema in applicable:
        changed = change(path, value, schema)
        if changed != value:
            return changed
    match value:
        case dict():
            return {key: _map(_of_property(applicable, key), item, change, f"{path}.{key}") for key, item in value.items()}
        case list():
            return [_map(_of_item(applicable, index), item, change, f"{path}[{index}]") for index, item in enumerate(value)]
        case _:
            return value


def _of_property(schemas: list[JsonSchema], name: str) -> list[JsonSchema]:
    return [found for schema in schemas for found in _properties(schema, name)]


def _properties(schema: JsonSchema, name: str) -> Iterator[JsonSchema]:
    """The schemas by name and by each matching pattern; `additionalProperties` if there is neither."""
    properties, patterns = schema.get("properties"), schema.get("patternProperties")
    found = [properties[name]] if isinstance(properties, dict) and name in properties else []
    if isinstance(patterns, dict):
        found += [part for pattern, part in patterns.items() if _matches(pattern, name)]
    yield from (part for part in found or [schema.get("additionalProperties")] if isinstance(part, dict))


def _matches(pattern: str, name: str) -> bool:
    """A pattern that cannot be compiled here counts as matching, so that possible secrets are masked."""
    try:
        _reader(pattern).validate_python(name)
    except ValidationError:
        return False
    except SchemaError:
        return True
    return True


@lru_cache(maxsize=1024)
def _reader(pattern: str) -> TypeAdapter[str]:
    """Matches in linear time, because the pattern is not trusted, and `re` may take forever. Raises SchemaError."""
    return TypeAdapter(Annotated[str, Field(pattern=pattern)])


def _of_item(schemas: list[JsonSchema], index: int) -> list[JsonSchema]:
    return [found for schema in schemas if isinstance(found := _item(schema, index), dict)]


def _item(schema: JsonSchema, index: int) -> JsonValue:
    prefix = schema.get("prefixItems")
    return prefix[index] if isinstance(prefix, list) and index < len(prefix) else schema.get("items")


def _branches(schema: JsonSchema) -> Iterator[JsonSchema]:
    """Subschemas that may apply to the same value."""
    for keyword, kind in FOLLOWED.items():
        if keyword in _SAME_VALUE and keyword in schema:
            value = schema[keyword]
            for branch in _schemas([*value.values()] if kind == "named" and isinstance(value, dict) else value):
                yield branch
                yield from _branches(branch)


def _schemas(value: JsonValue) -> Iterator[JsonSchema]:
    yield from (item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict))


def _objects(value: JsonValue) -> Iterator[tuple[str, JsonSchema]]:
    if isinstance(value, dict):
        yield from ((name, item) for name, item in value.items() if isinstance(item, dict))


def is_secret(schema: JsonSchema) -> bool:
    return schema.get("writeOnly") is True or schema.get("format") == "password"
