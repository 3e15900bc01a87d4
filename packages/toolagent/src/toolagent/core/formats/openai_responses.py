"""A tool in the form of OpenAI's responses."""

from pydantic import JsonValue

from toolagent.contracts.manifest import ToolManifest
from toolagent.core.formats.openai import function_of

__all__ = ["as_openai_responses"]


def as_openai_responses(manifest: ToolManifest, name: str) -> dict[str, JsonValue]:
    """Raises UnsuitableTool."""
    # The default is strict, which allows a part of JSON Schema only and requires every parameter.
    return {"type": "function", **function_of(manifest, name), "strict": False}
