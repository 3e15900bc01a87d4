"""A server's description of a tool, as an entry of the catalog."""

import pytest

from engine.mcp_servers.entries import NoTool, definition_of, entry_of
from engine.runtimes.mcp.listing import ListedTool
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import PermissionClass, SideEffectScope
from toolagent.contracts.mcp_servers import McpServerSpec
from toolagent.contracts.sources import McpHints, McpSource

SERVER = McpSource(tool_name="-", url="https://a.example/mcp", process="far", server="far")
FAR, NEAR = McpServerSpec(url=SERVER.url), McpServerSpec(command="x")


def rights(spec: McpServerSpec, **hints: bool) -> tuple[PermissionClass, SideEffectScope, bool]:
    told = McpHints.model_validate(hints)
    manifest = entry_of(definition_of(ListedTool("act", "", {"type": "object"}, hints=told)), "far_act", spec, SERVER).manifest
    return manifest.permission_class, manifest.side_effect_scope, manifest.repeatable


def test_hints_decide_nothing_where_the_server_is_not_trusted() -> None:
    assert rights(FAR, read_only=True, idempotent=True) == (PermissionClass.EXTERNAL, SideEffectScope.NETWORK, False)
    assert rights(NEAR, read_only=True, idempotent=True) == (PermissionClass.EXTERNAL, SideEffectScope.LOCAL_STATE, False)


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        ({}, (PermissionClass.EXTERNAL, SideEffectScope.NETWORK, False)),
        ({"read_only": True}, (PermissionClass.EXTERNAL, SideEffectScope.NONE, True)),
        ({"read_only": True, "open_world": False}, (PermissionClass.READ, SideEffectScope.NONE, True)),
        ({"open_world": False}, (PermissionClass.WRITE, SideEffectScope.LOCAL_STATE, False)),
        ({"idempotent": True}, (PermissionClass.EXTERNAL, SideEffectScope.NETWORK, True)),
    ],
)
def test_a_trusted_server_is_believed(hints: dict[str, bool], expected: tuple[PermissionClass, SideEffectScope, bool]) -> None:
    assert rights(FAR.model_copy(update={"trusted": True}), **hints) == expected


def test_the_servers_own_words_stay_in_the_source() -> None:
    tool = ListedTool("Act!", "  Does it. ", {"type": "object"}, {"type": "object"}, McpHints(title="Actor", read_only=True))
    entry = entry_of(definition_of(tool), "far_act", FAR, SERVER)
    assert entry.sources == (SERVER.model_copy(update={"tool_name": "Act!", "hints": tool.hints}),)
    told = entry.manifest
    assert (told.name, told.description, told.group_ids, told.output_schema) == ("Actor", "Does it.", ("far",), {"type": "object"})


@pytest.mark.parametrize("schema", [{"$ref": "#/$defs/x"}, {"type": "object", "description": "x" * 70_000}])
def test_a_schema_that_cannot_be_used_makes_no_tool(schema: dict[str, str]) -> None:
    said: JsonSchema = {**schema, "$defs": {"x": {"properties": {"p": {"format": "file-path"}, "q": {"$ref": "#/$defs/x"}}}}}
    with pytest.raises(NoTool):
        entry_of(definition_of(ListedTool("act", "", said)), "far_act", FAR, SERVER)
