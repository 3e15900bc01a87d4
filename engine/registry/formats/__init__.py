"""The catalog's file formats, both ways: one module a file and a line below."""

from engine.registry.formats import containers_json, groups_json, mcp_json, registry_json, sources_json, versions_json

__all__ = ["FORMATS"]

FORMATS = (
    registry_json.FORMAT,
    sources_json.FORMAT,
    groups_json.FORMAT,
    containers_json.FORMAT,
    versions_json.FORMAT,
    mcp_json.FORMAT,
)
