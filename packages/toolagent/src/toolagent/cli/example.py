"""A command line that calls a tool, ready to copy."""

import json
import re
import shlex
from collections.abc import Iterator

from pydantic import JsonValue

from toolagent.cli.schemas import is_file, items_schema, property_names, property_schema, required_names, types_of
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.identifiers import FILE_ID_PATTERN
from toolagent.contracts.manifest import ToolManifest

__all__ = ["call_line"]


def call_line(manifest: ToolManifest) -> str:
    """`toolagent run …` with the tool's first example, or with made-up values for what it requires."""
    params = manifest.examples[0].input if manifest.examples else _made_up(manifest.input_schema)
    words = [word for name, value in params.items() for word in _words(name, value, property_schema(manifest.input_schema, name))]
    return shlex.join(["toolagent", "run", manifest.tool_id, *words])


def _words(name: str, value: JsonValue, schema: JsonSchema) -> Iterator[str]:
    if isinstance(value, list) and is_file(items_schema(schema)) and value:
        for item in value:
            yield from _words(name, item, items_schema(schema))
    elif isinstance(value, str) and is_file(schema) and not re.match(FILE_ID_PATTERN, value):
        yield f"{name}=@{value}"
    elif isinstance(value, str) and not value.startswith("@") and (not types_of(schema) or "string" in types_of(schema)):
        yield f"{name}={value}"
    else:
        yield f"{name}:={json.dumps(value, ensure_ascii=False)}"


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
