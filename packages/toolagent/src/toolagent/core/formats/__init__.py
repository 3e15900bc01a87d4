"""Tools in the forms of others: of the vendors of models, and of MCP."""

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
"""From a manifest and a name to the form. Each raises UnsuitableTool for a tool that is not taken there."""
