"""The client that the conformance suite of MCP starts: our own way to servers that somebody else runs.

The last argument is the server's URL. MCP_CONFORMANCE_SCENARIO, MCP_CONFORMANCE_PROTOCOL_VERSION and MCP_CONFORMANCE_CONTEXT say the rest.
"""

import asyncio
import json
import os
import ssl
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import MCPError
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl, JsonValue, ValidationError

from engine.runtimes.mcp.listing import ListedTool, listing_of
from engine.runtimes.mcp.remote import headers_of
from engine.runtimes.mcp.session import Session
from engine.runtimes.mcp.web import WebServer, over_web
from engine.runtimes.runtime import Asked, Silence, ToolRequest
from toolagent.contracts.call_messages import Listener
from toolagent.contracts.manifest import ToolManifest

_CALLBACK = "http://localhost:3000/callback"
_DOCUMENT = "https://conformance-test.local/client-metadata.json"
_MOST_BYTES, _MOST_VALUES = 1_000_000, 100_000
_CALL_S = 20.0


class Willing(Silence):
    """The dialogue with a caller that agrees to everything, and says of itself what a form has as its defaults."""

    listens = Listener(answers=("elicitation", "sampling", "roots"))

    async def ask(self, asked: Sequence[Asked]) -> list[dict[str, JsonValue]]:
        return [_agreed(one) for one in asked]


def _agreed(asked: Asked) -> dict[str, JsonValue]:
    match asked.question:
        case "elicitation/create":
            schema = cast("dict[str, Any]", asked.params.get("requestedSchema") or {})
            properties = cast("dict[str, dict[str, JsonValue]]", schema.get("properties") or {})
            content = {name: told.get("default", told.get("type") == "boolean" or "x") for name, told in properties.items()}
            return {"result": {"action": "accept", "content": cast("JsonValue", content)}}
        case "sampling/createMessage":
            return {"result": {"role": "assistant", "model": "none", "content": {"type": "text", "text": "yes"}}}
        case "roots/list":
            return {"result": {"roots": []}}


class Tokens:
    """What an authorization server has given out, for as long as this program runs."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self._tokens: OAuthToken | None = None
        self._client = client

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class User:
    """Somebody who lets a client in, in place of a browser."""

    def __init__(self) -> None:
        self._query: Mapping[str, list[str]] = {}

    async def visit(self, url: str) -> None:
        async with httpx2.AsyncClient() as browser:
            answer = await browser.get(url, follow_redirects=False)
        self._query = parse_qs(urlsplit(answer.headers["location"]).query)

    async def come_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=self._query["code"][0], state=self._first("state"), iss=self._first("iss"))

    def _first(self, name: str) -> str | None:
        return next(iter(self._query.get(name, ())), None)


def _auth(url: str, context: Mapping[str, Any]) -> OAuthClientProvider:
    known: OAuthClientInformationFull | None = None
    if "client_id" in context:
        known = OAuthClientInformationFull(
            client_id=context["client_id"],
            client_secret=context.get("client_secret"),
            redirect_uris=[AnyUrl(_CALLBACK)],
            token_endpoint_auth_method="client_secret_basic" if context.get("client_secret") else "none",
        )
    user = User()
    metadata = OAuthClientMetadata(
        client_name="tool-agent",
        redirect_uris=[AnyUrl(_CALLBACK)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    return OAuthClientProvider(url, metadata, Tokens(known), user.visit, user.come_back, client_metadata_url=_DOCUMENT)


def _stubs(schema: Mapping[str, Any]) -> dict[str, JsonValue]:
    """What a tool needs at least."""
    by_type: dict[str, JsonValue] = {"number": 5, "integer": 5, "boolean": True, "object": {}, "array": []}
    properties = cast("dict[str, dict[str, JsonValue]]", schema.get("properties") or {})
    required = cast("list[str]", schema.get("required") or [])
    return {name: by_type.get(str(properties.get(name, {}).get("type")), "x") for name in required}


def _calls(tools: Sequence[ListedTool], context: Mapping[str, Any]) -> Iterable[tuple[ListedTool, dict[str, JsonValue]]]:
    named = {tool.name: tool for tool in tools}
    if "toolCalls" in context:
        return [(named[call["name"]], call.get("arguments") or {}) for call in context["toolCalls"] if call["name"] in named]
    return [(tool, _stubs(tool.input_schema)) for tool in tools]


async def run(url: str, scenario: str, version: str, context: Mapping[str, Any]) -> None:
    auth = _auth(url, context) if scenario.startswith("auth/") else None
    web = WebServer(
        url,
        is_sse=False,
        headers=dict[str, str],
        tls=ssl.create_default_context(),
        public=None,
        most_bytes=_MOST_BYTES,
        max_values=_MOST_VALUES,
        auth=auth,
    )
    session = await Session.open(partial(over_web, web), modern_first=version >= "2026")
    try:
        listing = await listing_of(session)
        for number, (tool, arguments) in enumerate(_calls(listing.tools, context)):
            manifest = ToolManifest(tool_id="t", name="T", input_schema=tool.input_schema)
            request = ToolRequest(f"call-{number:08}", arguments, _CALL_S, Path(), manifest=manifest, dialogue=Willing())
            try:
                print(await session.call(tool.name, request, {}, headers_of(request)))  # noqa: T201 - it is a program
            except (MCPError, ValidationError) as error:
                print(f"{tool.name}: {error}", file=sys.stderr)  # noqa: T201
    finally:
        await session.close()


if __name__ == "__main__":
    asked = os.environ  # noqa: TID251 - the suite's, not settings of ours
    told: dict[str, Any] = json.loads(asked.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    asyncio.run(run(sys.argv[-1], asked["MCP_CONFORMANCE_SCENARIO"], asked.get("MCP_CONFORMANCE_PROTOCOL_VERSION") or "2026-07-28", told))
