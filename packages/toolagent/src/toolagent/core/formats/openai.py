"""A tool in the form of OpenAI's chat completions, which many others take too."""

from pydantic import JsonValue

from toolagent.contracts.manifest import ToolManifest
from toolagent.core.formats.schemas import described

__all__ = ["as_openai", "function_of"]

_LONGEST_DESCRIPTION = 1024


def as_openai(manifest: ToolManifest, name: str) -> dict[str, JsonValue]:
    """Raises UnsuitableTool."""
    return {"type": "function", "function": function_of(manifest, name)}


def function_of(manifest: ToolManifest, name: str) -> dict[str, JsonValue]:
    """Name, description and parameters of a function. Raises UnsuitableTool."""
    schema, said = described(manifest)
    return {"name": name, "description": said[:_LONGEST_DESCRIPTION], "parameters": schema}
