"""A tool in the form of an MCP server."""

from dataclasses import dataclass

from pydantic import JsonValue

from toolagent.contracts.manifest import PermissionClass, SideEffectScope, TaskSupport, ToolManifest
from toolagent.core.formats.schemas import is_object_schema, object_schema, without_formats

__all__ = ["TOOL_ID_KEY", "ToolHints", "as_mcp", "hints_of"]

TOOL_ID_KEY = "toolagent/tool_id"
"""The key of a tool's id in its `_meta`."""


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


@dataclass(frozen=True, slots=True)
class ToolHints:
    """The four hints of MCP's tool annotations."""

    read_only: bool
    """A call changes nothing."""
    destructive: bool
    """A call may change or remove what was there."""
    idempotent: bool
    """A second equal call has no further effect."""
    open_world: bool
    """A call may reach what belongs to others."""


def hints_of(manifest: ToolManifest) -> ToolHints:
    """The hints of a tool. Unknown properties count as dangerous: a manifest cannot say that changes only add."""
    is_read_only = manifest.side_effect_scope is SideEffectScope.NONE and manifest.permission_class is not PermissionClass.WRITE
    return ToolHints(
        read_only=is_read_only,
        destructive=not is_read_only,
        idempotent=manifest.repeatable,
        open_world=_reaches_others(manifest),
    )


def _reaches_others(manifest: ToolManifest) -> bool:
    is_external = manifest.permission_class is PermissionClass.EXTERNAL or manifest.side_effect_scope is SideEffectScope.NETWORK
    return is_external or bool(manifest.security_context.network_access.allow_hosts)
