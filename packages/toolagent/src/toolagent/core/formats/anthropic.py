"""A tool as Anthropic's messages take it."""

import re

from pydantic import JsonValue

from toolagent.contracts.manifest import ToolManifest
from toolagent.core.formats.schemas import UnsuitableTool, plain_object_schema
from toolagent.core.parameter_schemas import property_names

__all__ = ["as_anthropic"]

_PARAMETER = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def as_anthropic(manifest: ToolManifest, name: str) -> dict[str, JsonValue]:
    """Raises UnsuitableTool, also for names of parameters that would have the whole request refused."""
    schema, words = plain_object_schema(manifest.input_schema)
    if strange := [each for each in property_names(schema) if not _PARAMETER.fullmatch(each)]:
        raise UnsuitableTool(f"the name of its parameter {strange[0][:64]!r} is not 1 to 64 letters, digits, `_`, `.` or `-`")
    said = "\n\n".join(part for part in (manifest.description or manifest.name, words) if part)
    return {"name": name, "description": said, "input_schema": schema}
