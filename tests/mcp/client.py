"""The client that the MCP conformance suite starts, with our own connection to servers.

The last argument is the server's URL. MCP_CONFORMANCE_SCENARIO, MCP_CONFORMANCE_PROTOCOL_VERSION and MCP_CONFORMANCE_CONTEXT say the rest.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp import MCPError
from pydantic import JsonValue, ValidationError

from engine.runtimes.failures import NotSent
from engine.runtimes.mcp.listing import ListedTool, listing_of
from engine.runtimes.mcp.oauth.flow import Flow, Granted
from engine.runtimes.mcp.oauth.logins import login_required
from engine.runtimes.mcp.oauth.sending import asking
from engine.runtimes.mcp.remote import headers_of
from engine.runtimes.mcp.session import Session
from engine.runtimes.mcp.web import WebServer, over_web
from engine.runtimes.runtime import Asked, Silence, ToolRequest
from toolagent.contracts.call_messages import Listener
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.mcp_oauth import McpOAuth

_CALLBACK = "http://localhost:3000/callback"
_DOCUMENT = "https://conformance-test.local/client-metadata.json"
_MOST_BYTES, _MOST_VALUES = 1_000_000, 100_000
_CALL_S = 60.0
_UNAUTHORIZED = 401


class Willing(Silence):
    """A dialogue with a caller that accepts everything, and answers forms with their defaults."""

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


class Admission:
    """The login at one server, kept in this program. Instead of a browser, a person accepts everything."""

    def __init__(self, url: str, context: Mapping[str, Any]) -> None:
        self._url, self._ask = url, asking(None)
        self._given = McpOAuth(client_id=context["client_id"]) if "client_id" in context else None
        self._secret = cast("str | None", context.get("client_secret"))
        self._granted, self._turn = Granted(), asyncio.Lock()
        self.shown: list[str] = []

    async def token(self) -> str | None:
        return self._granted.tokens.access_token if self._granted.tokens else None

    async def renewed(
        self,
        used: str | None,
        refusal: httpx2.Response,
        *,
        is_again: bool = False,  # noqa: ARG002 - it may be one for too little
    ) -> str:
        async with self._turn:
            if await self.token() in {None, used} and not await self._is_renewed(refusal):
                await self._log_in(refusal)
        return await self.token() or ""

    async def refused(self) -> NotSent:
        return login_required("The server refuses tokens that it was just given.")

    async def _is_renewed(self, refusal: httpx2.Response) -> bool:
        flow = self._flow(self._granted)
        if refusal.status_code != _UNAUTHORIZED or not flow.can_renew:
            return False
        try:
            await flow.renewed()
        except NotSent:
            return False
        self._granted = flow.granted
        return True

    async def _log_in(self, refusal: httpx2.Response) -> None:
        visit = await self._flow(self._granted).begun(refusal)
        if visit is None:
            raise RuntimeError("There is nothing to visit.")
        async with httpx2.AsyncClient() as browser:
            answer = await browser.get(visit.url, follow_redirects=False)
        query = dict(parse_qsl(urlsplit(answer.headers["location"]).query))
        if query.get("state") != visit.state:
            raise RuntimeError("It came back to another login.")
        flow = self._flow(visit.granted)
        await flow.returned(visit, query["code"], query.get("iss"))
        self._granted = flow.granted

    def _flow(self, granted: Granted) -> Flow:
        return Flow(self._url, self._ask, granted, redirect_uri=_CALLBACK, given=self._given, secret=self._secret, document=_DOCUMENT)


def _stubs(schema: Mapping[str, Any]) -> dict[str, JsonValue]:
    """The minimum that a tool needs."""
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
    login = Admission(url, context) if scenario.startswith("auth/") else None
    web = WebServer(
        url,
        is_sse=False,
        headers=dict[str, str],
        public=None,
        most_bytes=_MOST_BYTES,
        max_values=_MOST_VALUES,
        login=login,
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
