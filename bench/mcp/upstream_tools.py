"""The tools of `bench/mcp/upstream.py`: the same one, reached in two ways."""

from pydantic import JsonValue

BY_MCP, BY_HTTP = "upstream_by_mcp", "upstream_by_http"

_MANIFEST: dict[str, JsonValue] = {"backend_runtime": "remote", "side_effect_scope": "none", "timeout_s": 30}


def tools_of_upstream(port: int) -> dict[str, tuple[dict[str, JsonValue], dict[str, JsonValue]]]:
    """For `make_catalog`, with the server on this port."""
    url = f"http://127.0.0.1:{port}"
    return {
        BY_MCP: ({"type": "mcp", "url": f"{url}/mcp", "tool_name": "say"}, _MANIFEST),
        BY_HTTP: ({"type": "remote", "remote_url": url, "endpoint_path": "/say"}, _MANIFEST),
    }
