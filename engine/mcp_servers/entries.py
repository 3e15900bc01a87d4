"""Makes entries of the catalog from what a server says of its tools.

Only a trusted server's hints count.
"""

import json
from typing import cast

from pydantic import JsonValue

from engine.runtimes.mcp.listing import ListedTool
from engine.validation.references import SchemaNotFollowedError, written_out
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import FileAccess, NetworkAccess, PermissionClass, SecurityContext, SideEffectScope, ToolManifest
from toolagent.contracts.mcp_servers import McpServerSpec
from toolagent.contracts.sources import McpHints, McpSource

_LONGEST_NAME, _LONGEST_DESCRIPTION = 200, 8_000
_MAX_SCHEMA = 64 * 1024
_TIMEOUT_S = 60.0


class NoTool(ValueError):
    """A tool of a server is not usable here. The message says why."""


def definition_of(tool: ListedTool) -> str:
    """The pinned text: everything the server says of the tool, in canonical form."""
    said: dict[str, JsonValue] = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "hints": tool.hints.model_dump(exclude_none=True),
    }
    return json.dumps(said, sort_keys=True, ensure_ascii=False)


def entry_of(definition: str, tool_id: str, spec: McpServerSpec, server: McpSource) -> ToolEntry:
    """The entry of a definition. `server` is a source of the server, of any tool. Raises NoTool."""
    said = cast("dict[str, JsonValue]", json.loads(definition))
    name, described, hints = str(said["name"]), str(said["description"]).strip(), McpHints.model_validate(said["hints"])
    source = server.model_copy(update={"tool_name": name, "hints": hints})
    group = server.process or ""
    rights = _believed(hints) if spec.trusted else _careful(spec)
    try:
        manifest = ToolManifest(
            tool_id=tool_id,
            name=(hints.title or name)[:_LONGEST_NAME],
            description=(described or f"The tool {name} of the MCP server {group}.")[:_LONGEST_DESCRIPTION],
            backend_runtime=source.traits.runtime,
            group_ids=(group,),
            input_schema=_schema(said, "input_schema"),
            output_schema=_schema(said, "output_schema"),
            security_context=rights_of(spec),
            timeout_s=_TIMEOUT_S,
            permission_class=rights[0],
            side_effect_scope=rights[1],
            idempotent=rights[2],
        )
    except ValueError as error:
        raise NoTool(f"It cannot be a tool here: {' '.join(str(error).split())[:300]}") from error
    return ToolEntry(manifest=manifest, sources=(source,))


def rights_of(spec: McpServerSpec) -> SecurityContext:
    """The sandbox rights of a server that is started here."""
    files = FileAccess(allow_read=spec.allow_read, allow_write=spec.allow_write)
    return SecurityContext(file_access=files, network_access=NetworkAccess(allow_hosts=spec.allow_hosts))


def _careful(spec: McpServerSpec) -> tuple[PermissionClass, SideEffectScope, bool]:
    reaches = spec.url is not None or spec.allow_hosts
    return PermissionClass.EXTERNAL, SideEffectScope.NETWORK if reaches else SideEffectScope.LOCAL_STATE, False


def _believed(hints: McpHints) -> tuple[PermissionClass, SideEffectScope, bool]:
    """By the protocol's defaults: a tool without hints has side effects in an open world. `idempotent` is ignored for read-only tools."""
    if hints.read_only:
        is_closed = hints.open_world is False
        return (PermissionClass.READ if is_closed else PermissionClass.EXTERNAL), SideEffectScope.NONE, True
    if hints.open_world is False:
        return PermissionClass.WRITE, SideEffectScope.LOCAL_STATE, bool(hints.idempotent)
    return PermissionClass.EXTERNAL, SideEffectScope.NETWORK, bool(hints.idempotent)


def _schema(said: dict[str, JsonValue], field: str) -> JsonSchema:
    schema = cast("JsonSchema", said[field] or {})
    if (size := len(json.dumps(schema))) > _MAX_SCHEMA:
        raise NoTool(f"Its {field} has {size} characters; at most {_MAX_SCHEMA} are taken.")
    try:
        return written_out(schema)
    except SchemaNotFollowedError as error:
        raise NoTool(f"Its {field} cannot be used: {error}") from error
