"""MCP servers of repositories that only speak HTTP, connected to where they run."""

import json
import shutil
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.making.building.builds import Job, Place
from engine.making.mcp_servers.building import McpBuilder
from engine.making.node_projects.preparing import NodeProjects
from engine.making.openapi.tools import Described
from engine.making.python_projects.preparing import PythonProjects
from engine.runtimes.failures import CallFailed
from engine.runtimes.mcp.runtime import McpRuntime
from engine.runtimes.runtime import ToolRequest
from tests.making.inspection.conftest import written
from tests.runtimes.conftest import silent
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.sources import McpSource
from toolagent_service.contracts.plans import McpBuild

ABOUT = Described("notes", "Notes.")

LOW_LEVEL = """
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route

server = Server("notes")

@server.list_tools()
async def tools():
    return [types.Tool(name="add", inputSchema={"type": "object", "properties": {"a": {"type": "integer"}}})]

@server.call_tool()
async def call(name, arguments):
    print("on stdout, as apps do")
    if arguments.get("a") == -1:
        os._exit(9)
    return [types.TextContent(type="text", text=str(arguments["a"] + 1))]
"""
STREAMABLE = (
    LOW_LEVEL
    + """
manager = StreamableHTTPSessionManager(app=server, stateless=False)

@asynccontextmanager
async def living(app):
    async with manager.run():
        yield

app = Starlette(routes=[Mount("/speak-mcp", app=manager.handle_request)], lifespan=living)
if __name__ == "__main__":
    uvicorn.run(app, port=8123)
"""
)
OVER_SSE = (
    LOW_LEVEL
    + """
sse = SseServerTransport("/messages/")

async def connected(request):
    async with sse.connect_sse(request.scope, request.receive, request._send) as streams:
        await server.run(streams[0], streams[1], server.create_initialization_options())
    return Response()

app = Starlette(routes=[Route("/sse", endpoint=connected), Mount("/messages/", app=sse.handle_post_message)])
"""
)


@pytest.mark.parametrize(("text", "kind"), [(STREAMABLE, "'file'"), pytest.param(OVER_SSE, "'app'", marks=pytest.mark.long)])
async def test_a_server_that_speaks_http_alone_is_spoken_to_by_http(
    tmp_path: Path, projects: PythonProjects, node: NodeProjects, servers: McpRuntime, place: Place, text: str, kind: str
) -> None:
    repository = written(tmp_path / "origin", {"server.py": text, "requirements.txt": "mcp<2\n"})
    plan = McpBuild(module="server.py", over=("http",))
    built = await McpBuilder(projects, node, servers, {}).build(plan, Job(repository, ABOUT, place, silent))
    assert kind in (place.folder / "main.py").read_text()
    [entry] = built.candidate.entries
    await _is_called_and_dies(servers, entry, tmp_path)


async def _is_called_and_dies(servers: McpRuntime, entry: ToolEntry, folder: Path) -> None:
    source = entry.sources[0]
    assert isinstance(source, McpSource)
    running = await servers.start(entry.manifest, source, silent)
    try:
        called = await servers.call(running, source, ToolRequest("call-12345678", {"a": 2}, 20.0, folder / "none"))
        assert "3" in str(called)
        with pytest.raises(CallFailed) as died:
            await servers.call(running, source, ToolRequest("call-87654321", {"a": -1}, 20.0, folder / "none"))
        assert died.value.outcome == "unknown"
    finally:
        await servers.stop(running)


NODE_SERVER: dict[str, JsonValue] = {
    "name": "noted", "version": "1.0.0", "type": "module", "bin": {"noted": "server.js"},
    "dependencies": {"@modelcontextprotocol/sdk": "1.20.0", "express": "5.1.0", "zod": "3.25.76"},
}  # fmt: skip
NODE_TOOLS = """#!/usr/bin/env node
import { randomUUID } from "node:crypto";
import express from "express";
import { z } from "zod";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

const made = () => {
  const server = new McpServer({ name: "noted", version: "1.0.0" });
  server.registerTool("add", { inputSchema: { a: z.number() } }, async ({ a }) => {
    console.log("on stdout, as apps do");
    if (a === -1) process.exit(9);
    return { content: [{ type: "text", text: String(a + 1) }] };
  });
  return server;
};
const app = express();
app.use(express.json());
const sessions = {};
"""
NODE_STREAMABLE = (
    NODE_TOOLS
    + """
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

app.post("/speak/mcp", async (request, response) => {
  let transport = sessions[request.headers["mcp-session-id"]];
  if (!transport) {
    const sessionIdGenerator = () => randomUUID();
    transport = new StreamableHTTPServerTransport({ sessionIdGenerator, onsessioninitialized: (id) => (sessions[id] = transport) });
    await made().connect(transport);
  }
  await transport.handleRequest(request, response, request.body);
});
app.listen(process.env.PORT ?? 3000);
"""
)
NODE_SSE = (
    NODE_TOOLS
    + """
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";

app.get("/sse", async (_request, response) => {
  const transport = new SSEServerTransport("/messages", response);
  sessions[transport.sessionId] = transport;
  await made().connect(transport);
});
app.post("/messages", (request, response) => sessions[request.query.sessionId].handlePostMessage(request, response, request.body));
app.listen(3000, "0.0.0.0");
"""
)


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not on this machine.")
@pytest.mark.parametrize("text", [NODE_STREAMABLE, pytest.param(NODE_SSE, marks=pytest.mark.long)])
async def test_a_server_of_nodejs_that_speaks_http_alone_is_spoken_to_by_http(
    tmp_path: Path, projects: PythonProjects, node: NodeProjects, servers: McpRuntime, place: Place, text: str
) -> None:
    repository = written(tmp_path / "origin", {"package.json": json.dumps(NODE_SERVER), "server.js": text})
    plan = McpBuild(language="nodejs", programs=("noted",), over=("http",))
    built = await McpBuilder(projects, node, servers, {}).build(plan, Job(repository, ABOUT, place, silent))
    [entry] = built.candidate.entries
    await _is_called_and_dies(servers, entry, tmp_path)
