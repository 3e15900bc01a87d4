"""The parts of a JSON Schema that describe one parameter: its type, its items, whether it is a file."""

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from toolagent.contracts.contract import JsonSchema
from toolagent.core.json_paths import referenced
from toolagent.core.schemas import kind_of

__all__ = [
    "branches_of",
    "is_file",
    "items_schema",
    "properties_of",
    "property_names",
    "property_schema",
    "required_names",
    "subschema",
    "type_label",
    "types_of",
]

_DEPTH = 8
_UNIONS = ("anyOf", "oneOf", "allOf")


def property_names(schema: JsonSchema) -> tuple[str, ...]:
    return tuple(properties_of(schema))


def properties_of(schema: JsonSchema) -> Mapping[str, JsonValue]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def required_names(schema: JsonSchema) -> frozenset[str]:
    required = schema.get("required")
    return frozenset(name for name in required if isinstance(name, str)) if isinstance(required, list) else frozenset()


def property_schema(schema: JsonSchema, name: str) -> JsonSchema:
    """The schema of one parameter, with references resolved down to its items; empty if there is none."""
    found = properties_of(schema).get(name)
    return _flat(schema, found if found is not None else schema.get("additionalProperties"), _DEPTH)


def types_of(schema: JsonSchema) -> frozenset[str]:
    """The JSON types that the schema or its choices name; empty if they name none."""
    return frozenset(kind for branch in branches_of(schema) for kind in _named_types(branch))


def items_schema(schema: JsonSchema) -> JsonSchema:
    """The schema of the items of an array; empty if there is none."""
    return subschema(schema, "items")


def subschema(schema: JsonSchema, keyword: str) -> JsonSchema:
    """The schema under a keyword, of the schema or its first choice with one; empty if there is none."""
    for branch in branches_of(schema):
        if isinstance(found := branch.get(keyword), dict):
            return found
    return {}


def is_file(schema: JsonSchema) -> bool:
    """Whether the parameter is a file, to be uploaded and sent by its id."""
    return any(branch.get("format") == "file-path" for branch in branches_of(schema))


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
        return _flat(root, referenced(root, reference), depth - 1) | _flat(root, own, depth - 1)
    flat = dict(schema)
    for key in _UNIONS:
        branches = flat.get(key)
        if isinstance(branches, list):
            flat[key] = [_flat(root, branch, depth - 1) for branch in branches]
    if "items" in flat:
        flat["items"] = _flat(root, flat["items"], depth - 1)
    return flat


def branches_of(schema: JsonSchema) -> Iterator[JsonSchema]:
    """The schema, and the choices in it, at any depth."""
    yield schema
    for key in _UNIONS:
        branches = schema.get(key)
        for branch in branches if isinstance(branches, list) else ():
            if isinstance(branch, dict):
                yield from branches_of(branch)


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
