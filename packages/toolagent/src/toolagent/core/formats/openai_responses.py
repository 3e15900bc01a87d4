"""A tool as OpenAI's responses take it."""

from pydantic import JsonValue

from toolagent.contracts.manifest import ToolManifest
from toolagent.core.formats.openai import function_of

__all__ = ["as_openai_responses"]


def as_openai_responses(manifest: ToolManifest, name: str) -> dict[str, JsonValue]:
    """Raises UnsuitableTool."""
    # Unsaid it would be strict, which takes a part of JSON Schema only and has every parameter required.
    return {"type": "function", **function_of(manifest, name), "strict": False}
