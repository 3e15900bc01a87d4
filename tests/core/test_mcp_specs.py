"""Faults of the specification of an MCP server."""

import pytest
from pydantic import JsonValue

from toolagent.contracts.mcp_servers import McpServerSpec, McpTransport
from toolagent.core.mcp_specs import SpecFault, settled_spec

WEB = "https://a.example/mcp"


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({}, "url"),
        ({"url": WEB, "command": "x"}, "command"),
        ({"url": WEB, "args": ["x"]}, "args"),
        ({"url": WEB, "env": {"A": "b"}}, "env"),
        ({"url": WEB, "allow_read": ["/srv"]}, "allow_read"),
        ({"url": WEB, "type": "stdio"}, "type"),
        ({"command": "x", "type": "http"}, "type"),
        ({"command": "x", "headers": {"X-A": "b"}}, "headers"),
        *(({"url": url}, "url") for url in ("ftp://a", "a.example", "http:///x", "https://a:0/", "https://a:99999/", "https://a/#x")),
        ({"url": "https://me:pass@a.example"}, "url"),
        ({"url": "http://a.example/mcp", "headers": {"Authorization": "secret:KEY"}}, "url"),
        ({"url": WEB, "headers": {"Host": "b"}}, "headers"),
        ({"url": WEB, "headers": {"X-A": "b\nc"}}, "headers"),
        ({"url": WEB, "headers": {"X-A": "secret:small"}}, "headers"),
        ({"url": WEB, "headers": {"X-A": "Bearer ${TOKEN}"}}, "headers"),
        ({"command": "x", "env": {"LD_PRELOAD": "y"}}, "env"),
        ({"command": "x", "env": {"PATH": "y"}}, "env"),
        ({"command": "x", "args": ["a\0b"]}, "args"),
        ({"command": "x", "args": ["--api-key", "sk-0123456789abcdefghij"]}, "args"),
        ({"command": "x", "args": ["postgres://me:pass@db/x"]}, "args"),
    ],
)
def test_what_cannot_be_names_its_field(said: JsonValue, field: str) -> None:
    with pytest.raises(SpecFault) as caught:
        settled_spec(McpServerSpec.model_validate(said))
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("said", "transport"),
    [
        ({"command": "uvx", "args": ["mcp-server-time"]}, McpTransport.STDIO),
        ({"url": WEB}, McpTransport.STREAMABLE_HTTP),
        ({"url": "https://a.example/sse"}, McpTransport.SSE),
        ({"url": WEB, "type": "sse"}, McpTransport.SSE),
        *(
            ({"url": "https://a.example/sse", "type": said}, McpTransport.STREAMABLE_HTTP)
            for said in ("http", "streamable-http", "streamableHttp")
        ),
        ({"url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "secret:KEY"}}, McpTransport.STREAMABLE_HTTP),
    ],
)
def test_the_type_follows_from_what_is_said(said: JsonValue, transport: McpTransport) -> None:
    assert settled_spec(McpServerSpec.model_validate(said)).type is transport
