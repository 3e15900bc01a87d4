"""A command line that calls a tool, ready to copy."""

import json
import re
import shlex
from collections.abc import Iterator

from pydantic import JsonValue

from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.identifiers import FILE_ID_PATTERN
from toolagent.contracts.manifest import ToolManifest
from toolagent.core.parameter_schemas import is_file, items_schema, property_schema, types_of
from toolagent.core.sample_params import sample_params

__all__ = ["call_line"]


def call_line(manifest: ToolManifest) -> str:
    """`toolagent run …` with the tool's first example, or with made-up values for required parameters."""
    params = sample_params(manifest)
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
