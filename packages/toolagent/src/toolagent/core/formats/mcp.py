"""A tool as an MCP server lists it."""

from pydantic import JsonValue

from toolagent.contracts.manifest import TaskSupport, ToolManifest
from toolagent.core.formats.annotations import hints_of
from toolagent.core.formats.schemas import is_object_schema, object_schema, without_formats

__all__ = ["TOOL_ID_KEY", "as_mcp"]

TOOL_ID_KEY = "toolagent/tool_id"
"""In `_meta` of a tool: its id here."""


def as_mcp(manifest: ToolManifest, name: str) -> dict[str, JsonValue]:
    """A `Tool` of revision 2025-11-25; later ones ignore `execution`. Raises UnsuitableTool for a tool without an object of parameters."""
    hints = hints_of(manifest)
    schema = manifest.output_schema
    output: dict[str, JsonValue] = {"outputSchema": without_formats(schema)} if is_object_schema(schema) else {}
    return {
        "name": name,
        "title": manifest.name,
        "description": manifest.description,
        "inputSchema": object_schema(manifest.input_schema),
        **output,
        "annotations": {
            "title": manifest.name,
            "readOnlyHint": hints.read_only,
            "destructiveHint": hints.destructive,
            "idempotentHint": hints.idempotent,
            "openWorldHint": hints.open_world,
        },
        "execution": {"taskSupport": (manifest.task_support or TaskSupport.OPTIONAL).value},
        "_meta": {TOOL_ID_KEY: manifest.tool_id},
    }
