"""Params of a tool as an example."""

from pydantic import JsonValue

from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest
from toolagent.core.parameter_schemas import is_file, items_schema, property_names, property_schema, required_names, types_of

__all__ = ["sample_params"]


def sample_params(manifest: ToolManifest) -> dict[str, JsonValue]:
    """The tool's first example, or made-up values for its required params. A file is `FILE`."""
    return manifest.examples[0].input if manifest.examples else _made_up(manifest.input_schema)


def _made_up(schema: JsonSchema) -> dict[str, JsonValue]:
    required = required_names(schema)
    return {name: _sample(name, property_schema(schema, name)) for name in property_names(schema) if name in required}


def _sample(name: str, schema: JsonSchema) -> JsonValue:
    for key in ("examples", "enum"):
        options = schema.get(key)
        if isinstance(options, list) and options:
            return options[0]
    for key in ("default", "const", "minimum"):
        if key in schema:
            return schema[key]
    if is_file(schema):
        return "FILE"
    types = types_of(schema)
    if "string" in types or not types:
        return name.upper()
    samples: dict[str, JsonValue] = {"integer": 1, "number": 1.5, "boolean": True, "array": [_item(name, schema)], "object": {}}
    return next((sample for kind, sample in samples.items() if kind in types), None)


def _item(name: str, schema: JsonSchema) -> JsonValue:
    items = items_schema(schema)
    return _sample(name, items) if items else name.upper()
