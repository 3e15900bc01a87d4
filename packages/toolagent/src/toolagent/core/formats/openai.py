"""A tool as OpenAI's chat completions take it, and as many others who speak their protocol do."""

from pydantic import JsonValue

from toolagent.contracts.manifest import ToolManifest
from toolagent.core.formats.schemas import plain_object_schema

__all__ = ["as_openai", "function_of"]

_LONGEST_DESCRIPTION = 1024


def as_openai(manifest: ToolManifest, name: str) -> dict[str, JsonValue]:
    """Raises UnsuitableTool."""
    return {"type": "function", "function": function_of(manifest, name)}


def function_of(manifest: ToolManifest, name: str) -> dict[str, JsonValue]:
    """Name, description and parameters of a function. Raises UnsuitableTool."""
    schema, words = plain_object_schema(manifest.input_schema)
    said = "\n\n".join(part for part in (manifest.description or manifest.name, words) if part)
    return {"name": name, "description": said[:_LONGEST_DESCRIPTION], "parameters": schema}
