"""An MCP server over HTTP with the tools of the test, which records requests."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from toolagent.testing.servers.serving import ServerThread

Document = dict[str, JsonValue]


def tool(name: str, description: str = "Acts.", **more: JsonValue) -> Document:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


@dataclass
class Site:
    """`instead` answers all requests, where it is set."""

    tools: list[JsonValue] = field(default_factory=lambda: list[JsonValue]([tool("act")]))
    instead: Callable[[], Response] | None = None
    shown: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    paths: list[str] = field(default_factory=list[str])
    hanging: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    async def answer(self, request: Request) -> Response:
        self.shown.append(dict(request.headers))
        self.paths.append(request.url.path)
        if request.url.path == "/slow":
            await self.hanging.wait()
        if self.instead is not None:
            return self.instead()
        if request.method != "POST":
            return Response(status_code=405)
        asked = cast("Document", await request.json())
        return self._result(asked) if "id" in asked else Response(status_code=202)

    def _result(self, asked: Document) -> Response:
        params = cast("Document", asked.get("params") or {})
        results: dict[JsonValue, JsonValue] = {
            "initialize": {
                "protocolVersion": params.get("protocolVersion"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "site", "version": "1"},
            },
            "tools/list": {"tools": self.tools},
            "ping": {},
        }
        return JSONResponse({"jsonrpc": "2.0", "id": asked["id"], "result": results.get(asked["method"], {})})


@asynccontextmanager
async def served() -> AsyncGenerator[Site]:
    site = Site()
    app = Starlette(routes=[Route("/{rest:path}", site.answer, methods=["GET", "POST", "DELETE"])])
    async with ServerThread(app) as server:
        site.url = f"{server.url}/mcp"
        yield site
