"""Tools in the forms of model vendors and MCP."""

from collections.abc import Callable, Mapping

from pydantic import JsonValue

from toolagent.contracts.formats import ToolFormat
from toolagent.contracts.manifest import ToolManifest
from toolagent.core.formats.anthropic import as_anthropic
from toolagent.core.formats.mcp import as_mcp
from toolagent.core.formats.openai import as_openai
from toolagent.core.formats.openai_responses import as_openai_responses

FORMATS: Mapping[ToolFormat, Callable[[ToolManifest, str], dict[str, JsonValue]]] = {
    ToolFormat.OPENAI: as_openai,
    ToolFormat.OPENAI_RESPONSES: as_openai_responses,
    ToolFormat.ANTHROPIC: as_anthropic,
    ToolFormat.MCP: as_mcp,
}
"""Converts a manifest with a name into each form. Raises UnsuitableTool for a tool that the vendor does not accept."""
