"""Which servers may get the key of a table."""

import pytest
from pydantic import JsonValue

from engine.external.entries import Table, is_same_server
from engine.external.forms import openapi

OAUTH: JsonValue = {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://b.example/token", "scopes": {}}}}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a.example/x", "https://A.example:443/y?z", True),
        ("http://a.example:80", "http://a.example", True),
        ("http://a.example", "https://a.example", False),
        ("https://a.example:8443", "https://a.example", False),
        ("https://b.example", "https://a.example", False),
        ("https://a.example:port", "https://a.example:port", False),
    ],
)
def test_a_server_is_scheme_host_and_port(one: str, other: str, *, same: bool) -> None:
    assert is_same_server(one, other) is same


def test_a_tool_whose_tokens_come_from_another_server_is_left_out() -> None:
    document: JsonValue = {
        "openapi": "3.1.0",
        "info": {"title": "Greeter"},
        "components": {"securitySchemes": {"oauth": OAUTH}},
        "paths": {
            "/hello": {"get": {"operationId": "open", "responses": {"200": {"content": {"application/json": {}}}}}},
            "/shut": {
                "get": {"operationId": "shut", "security": [{"oauth": []}], "responses": {"200": {"content": {"application/json": {}}}}}
            },
        },
    }
    url = "https://a.example/openapi.json"
    listing = openapi.read(document, Table("far", url, url, "EXTERNAL_FAR_API_KEY"))
    assert [entry.manifest.tool_id for entry in listing.entries] == ["far:open"]
    assert [one.entry for one in listing.left_out] == ["far:shut"]
