"""A tool in the form of Anthropic's messages."""

import re

from pydantic import JsonValue

from toolagent.contracts.manifest import ToolManifest
from toolagent.core.formats.schemas import UnsuitableTool, described
from toolagent.core.parameter_schemas import property_names

__all__ = ["as_anthropic"]

_PARAMETER = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def as_anthropic(manifest: ToolManifest, name: str) -> dict[str, JsonValue]:
    """Raises UnsuitableTool, also for names of parameters for which the API refuses the whole request."""
    schema, said = described(manifest)
    if strange := [each for each in property_names(schema) if not _PARAMETER.fullmatch(each)]:
        raise UnsuitableTool(f"the name of its parameter {strange[0][:64]!r} is not 1 to 64 letters, digits, `_`, `.` or `-`")
    return {"name": name, "description": said, "input_schema": schema}
