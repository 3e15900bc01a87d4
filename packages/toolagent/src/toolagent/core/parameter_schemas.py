"""What a JSON Schema says of one parameter, as far as people and examples need it."""

from collections.abc import Iterator

from pydantic import JsonValue

from toolagent.contracts.contract import JsonSchema
from toolagent.core.schemas import kind_of

__all__ = ["is_file", "items_schema", "property_names", "property_schema", "required_names", "type_label", "types_of"]

_DEPTH = 8
_UNIONS = ("anyOf", "oneOf", "allOf")


def property_names(schema: JsonSchema) -> tuple[str, ...]:
    properties = schema.get("properties")
    return tuple(properties) if isinstance(properties, dict) else ()


def required_names(schema: JsonSchema) -> frozenset[str]:
    required = schema.get("required")
    return frozenset(name for name in required if isinstance(name, str)) if isinstance(required, list) else frozenset()


def property_schema(schema: JsonSchema, name: str) -> JsonSchema:
    """The schema of one parameter, references resolved as far down as its items; empty when nothing is said of it."""
    properties = schema.get("properties")
    found = properties.get(name) if isinstance(properties, dict) else None
    return _flat(schema, found if found is not None else schema.get("additionalProperties"), _DEPTH)


def types_of(schema: JsonSchema) -> frozenset[str]:
    """All JSON types the schema lets through by name; empty when it does not say."""
    return frozenset(kind for branch in _branches(schema) for kind in _named_types(branch))


def items_schema(schema: JsonSchema) -> JsonSchema:
    """The schema of the items of an array; empty when nothing is said of them."""
    for branch in _branches(schema):
        items = branch.get("items")
        if isinstance(items, dict):
            return items
    return {}


def is_file(schema: JsonSchema) -> bool:
    """Whether the parameter is a file, to be uploaded and sent by its id."""
    return any(branch.get("format") == "file-path" for branch in _branches(schema))


def type_label(schema: JsonSchema) -> str:
    """The type as a person reads it: `integer`, `array of file`, `a | b | c` for a choice."""
    choices = schema.get("enum")
    if isinstance(choices, list):
        return " | ".join(str(choice) for choice in choices)
    if is_file(schema):
        return "file"
    types = types_of(schema)
    if types == frozenset({"array"}) and (item := type_label(items_schema(schema))) != "any":
        return f"array of {item}"
    return " or ".join(sorted(types)) or "any"


def _flat(root: JsonSchema, schema: JsonValue, depth: int) -> JsonSchema:
    """`schema` with its local references replaced, down to unions and items; a cycle ends at `depth`."""
    if not isinstance(schema, dict) or not depth:
        return {}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        own = {key: value for key, value in schema.items() if key != "$ref"}
        return _flat(root, _at(root, reference), depth - 1) | _flat(root, own, depth - 1)
    flat = dict(schema)
    for key in _UNIONS:
        branches = flat.get(key)
        if isinstance(branches, list):
            flat[key] = [_flat(root, branch, depth - 1) for branch in branches]
    if "items" in flat:
        flat["items"] = _flat(root, flat["items"], depth - 1)
    return flat


def _at(root: JsonSchema, reference: str) -> JsonValue:
    found: JsonValue = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found


def _branches(schema: JsonSchema) -> Iterator[JsonSchema]:
    yield schema
    for key in _UNIONS:
        branches = schema.get(key)
        for branch in branches if isinstance(branches, list) else ():
            if isinstance(branch, dict):
                yield from _branches(branch)


def _named_types(schema: JsonSchema) -> Iterator[str]:
    match schema.get("type"):
        case str(kind):
            yield kind
        case list(kinds):
            yield from (kind for kind in kinds if isinstance(kind, str))
        case _:
            choices = schema.get("enum")
            if isinstance(choices, list):
                yield from map(kind_of, choices)
            if "const" in schema:
                yield kind_of(schema["const"])
