"""What follows from a JSON Schema besides validation: defaults, file paths, secrets."""

from collections.abc import Callable, Iterator

from pydantic import JsonValue

from toolagent.contracts.manifest import JsonSchema

__all__ = ["FILE_PATH", "MASK", "map_values", "mask_secrets", "mentions_format", "values_of_format", "with_defaults"]

FILE_PATH = "file-path"
"""The `format` of strings that name a file (issue vocabulary; JSON Schema leaves formats open)."""

MASK = "***"

_MAX_DEPTH = 32


def with_defaults(schema: JsonSchema, params: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The parameters with every default of the schema filled in, also inside objects that are there."""
    filled = dict(params)
    for name, property_schema in _objects(schema.get("properties")):
        if name not in filled and "default" in property_schema:
            filled[name] = property_schema["default"]
        value = filled.get(name)
        if isinstance(value, dict):
            filled[name] = with_defaults(property_schema, value)
    return filled


def values_of_format(schema: JsonSchema, value: JsonValue, name: str) -> Iterator[tuple[str, str]]:
    """Every string in the value whose schema has that `format`, with its JSON path."""
    found: list[tuple[str, str]] = []

    def note(path: str, text: str, schema: JsonSchema) -> str:
        if schema.get("format") == name:
            found.append((path, text))
        return text

    map_values(schema, value, note)
    yield from found


def mentions_format(schema: JsonValue, name: str) -> bool:
    """Whether any part of the schema has that `format`."""
    match schema:
        case dict():
            return schema.get("format") == name or any(mentions_format(part, name) for part in schema.values())
        case list():
            return any(mentions_format(part, name) for part in schema)
        case _:
            return False


def mask_secrets(schema: JsonSchema, params: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The parameters with those masked whose schema says `writeOnly` or `format: password`."""

    def mask(_path: str, text: str, schema: JsonSchema) -> str:
        return MASK if schema.get("writeOnly") is True or schema.get("format") == "password" else text

    masked = map_values(schema, params, mask)
    return masked if isinstance(masked, dict) else {}


def map_values(schema: JsonSchema, value: JsonValue, change: Callable[[str, str, JsonSchema], str]) -> JsonValue:
    """The value with every string replaced by `change(path, string, its schema)`.

    Follows `properties`, `additionalProperties`, `items`, `prefixItems` and the branches of `allOf`, `anyOf` and `oneOf`.
    """
    return _map(schema, value, change, "$", _MAX_DEPTH)


def _map(schema: JsonSchema, value: JsonValue, change: Callable[[str, str, JsonSchema], str], path: str, depth: int) -> JsonValue:
    if depth == 0:
        return value
    match value:
        case str():
            value = change(path, value, schema)
        case dict():
            value = {key: _map(_property(schema, key), item, change, f"{path}.{key}", depth - 1) for key, item in value.items()}
        case list():
            value = [_map(_item(schema, index), item, change, f"{path}[{index}]", depth - 1) for index, item in enumerate(value)]
        case _:
            return value
    for branch in _branches(schema):
        value = _map(branch, value, change, path, depth - 1)
    return value


def _property(schema: JsonSchema, name: str) -> JsonSchema:
    properties = schema.get("properties")
    if isinstance(properties, dict) and isinstance(found := properties.get(name), dict):
        return found
    return _as_schema(schema.get("additionalProperties"))


def _item(schema: JsonSchema, index: int) -> JsonSchema:
    prefix = schema.get("prefixItems")
    if isinstance(prefix, list) and index < len(prefix):
        return _as_schema(prefix[index])
    return _as_schema(schema.get("items"))


def _branches(schema: JsonSchema) -> Iterator[JsonSchema]:
    for keyword in ("allOf", "anyOf", "oneOf"):
        branches = schema.get(keyword)
        if isinstance(branches, list):
            yield from (branch for branch in branches if isinstance(branch, dict))


def _objects(value: JsonValue) -> Iterator[tuple[str, JsonSchema]]:
    if isinstance(value, dict):
        yield from ((name, item) for name, item in value.items() if isinstance(item, dict))


def _as_schema(value: JsonValue) -> JsonSchema:
    return value if isinstance(value, dict) else {}
