"""An MCP client that sends exactly what a test gives it, and a door for it."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from api.app import create_app, running_mcp
from api.ports import Dependencies
from engine.store.call_messages import CallMessages
from tests.api.conftest import BASE_URL, House

OLD, NEW = "2025-11-25", "2026-07-28"
JSON_RPC = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
META = "io.modelcontextprotocol"
TASKS = f"{META}/tasks"


@dataclass
class Caller:
    """A client of one revision. `capabilities` are the declared ones, `path` may select tools."""

    http: httpx.AsyncClient
    revision: str
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    path: str = "/mcp"
    session_id: str | None = None
    _number: int = 0

    @property
    def headers(self) -> dict[str, str]:
        session = {"Mcp-Session-Id": self.session_id} if self.session_id else {}
        return {**JSON_RPC, "MCP-Protocol-Version": self.revision, **session}

    async def open(self) -> "Caller":
        """Make the handshake of the older revision."""
        if self.revision == OLD:
            client = {"protocolVersion": OLD, "capabilities": self.capabilities, "clientInfo": {"name": "tests", "version": "1"}}
            answer = await self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client})
            self.session_id = answer.headers["mcp-session-id"]
        return self

    async def post(self, message: object, headers: Mapping[str, str] | None = None) -> httpx.Response:
        return await self.http.post(self.path, content=json.dumps(message), headers={**self.headers, **(headers or {})})

    def request(self, method: str, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
        """The message and its headers."""
        self._number += 1
        if self.revision == OLD:
            return {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}, {}
        meta = {
            f"{META}/protocolVersion": NEW,
            f"{META}/clientInfo": {"name": "tests", "version": "1"},
            f"{META}/clientCapabilities": self.capabilities,
            **params.pop("_meta", {}),
        }
        name = params.get("name") or params.get("uri") or params.get("taskId")
        headers = {"Mcp-Method": method, **({"Mcp-Name": name} if name else {})}
        return {"jsonrpc": "2.0", "id": self._number, "method": method, "params": {**params, "_meta": meta}}, headers

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The JSON-RPC answer: the last message of a stream."""
        message, headers = self.request(method, **params)
        return messages_of(await self.post(message, headers))[-1]

    async def result(self, method: str, **params: Any) -> dict[str, Any]:
        answer = await self.ask(method, **params)
        assert "result" in answer, answer
        return answer["result"]

    async def error(self, method: str, **params: Any) -> dict[str, Any]:
        answer = await self.ask(method, **params)
        assert "error" in answer, answer
        return answer["error"]


def messages_of(response: httpx.Response) -> list[dict[str, Any]]:
    """The messages of an answer in JSON, or of a stream."""
    if response.headers["content-type"].startswith("application/json"):
        return [response.json()]
    data = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: {")]
    return [json.loads(one) for one in data]


def said_by(house: House) -> CallMessages:
    """The messages of calls, written by the test instead of tools."""
    messages = house.dependencies.call_messages
    assert isinstance(messages, CallMessages)
    return messages


@asynccontextmanager
async def door(dependencies: Dependencies) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of a front door whose MCP server is running."""
    app = create_app(dependencies)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with running_mcp(app), httpx.AsyncClient(transport=transport, base_url=BASE_URL) as http:
        yield http


@asynccontextmanager
async def calling(
    dependencies: Dependencies, revision: str, capabilities: Mapping[str, Any] | None = None, path: str = "/mcp"
) -> AsyncGenerator[Caller]:
    async with door(dependencies) as http:
        yield await Caller(http, revision, capabilities or {}, path).open()
