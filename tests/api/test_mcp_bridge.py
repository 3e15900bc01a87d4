"""MCP over stdin and stdout, in front of a real front door."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import select
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from engine.store.database import Database
from engine.store.mcp_sessions import McpSessionTable
from engine.store.mcp_tables import mcp_sessions
from tests.api.conftest import House
from tests.api.mcp_client import NEW, OLD, Caller
from tests.api.serving import reached
from toolagent.client.mcp_bridge import McpBridge
from toolagent_service.contracts.mcp import McpSession

CLIENT = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}


class Ends:
    """The client's ends of the two pipes."""

    def __init__(self, http: httpx.AsyncClient, path: str = "/mcp") -> None:
        self._given: asyncio.Queue[str | None] = asyncio.Queue()
        self._written: asyncio.Queue[str] = asyncio.Queue()
        self.bridge = McpBridge(http, self._written.put, path)

    def say(self, message: object) -> None:
        self._given.put_nowait(message if isinstance(message, str) else json.dumps(message))

    def close(self) -> None:
        self._given.put_nowait(None)

    async def read(self) -> dict[str, Any]:
        return json.loads(await asyncio.wait_for(self._written.get(), 60))

    async def lines(self) -> AsyncIterator[str]:
        while (line := await self._given.get()) is not None:
            yield line


@asynccontextmanager
async def bridged(house: House, path: str = "/mcp") -> AsyncGenerator[Ends]:
    async with reached(house.dependencies) as http:
        ends = Ends(http, path)
        running = asyncio.create_task(ends.bridge.run(ends.lines()))
        yield ends
        ends.close()
        await asyncio.wait_for(running, 60)


async def test_a_session_over_stdio(stocked: House) -> None:
    async with bridged(stocked, "/mcp?tag=图片") as ends:
        ends.say({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": CLIENT})
        assert (await ends.read())["result"]["protocolVersion"] == OLD
        ends.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        ends.say({"jsonrpc": "2.0", "id": "b", "method": "tools/list"})
        answer = await ends.read()
        assert (answer["id"], [tool["name"] for tool in answer["result"]["tools"]]) == ("b", ["image_compress_api"])


async def test_a_session_that_is_closed_is_begun_anew(stocked: House, database: Database) -> None:
    async with bridged(stocked) as ends:
        ends.say({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": CLIENT})
        await ends.read()
        assert await McpSessionTable(database).expire(timedelta(0)) == 1
        async with reached(stocked.dependencies) as http:
            # Another front door remembers nothing of the session.
            own, ends.bridge.http = ends.bridge.http, http
            for request_id in ("b", "c"):
                ends.say({"jsonrpc": "2.0", "id": request_id, "method": "ping"})
            answers = [await ends.read() for _ in range(2)]
            assert sorted(answers, key=lambda answer: answer["id"]) == [
                {"jsonrpc": "2.0", "id": request_id, "result": {}} for request_id in ("b", "c")
            ]
            ends.bridge.http = own
            assert await McpSessionTable(database).expire(timedelta(0)) == 1


async def test_a_session_that_is_begun_anew_has_the_level_and_the_subscriptions_of_the_lost_one(stocked: House, database: Database) -> None:
    uris = [f"toolagent://tools/{name}" for name in ("echo", "weather", "calculator")]
    asked = [("logging/setLevel", {"level": "error"}), *(("resources/subscribe", {"uri": uri}) for uri in uris)]
    async with bridged(stocked) as ends:
        ends.say({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": CLIENT})
        await ends.read()
        for number, (method, params) in enumerate(
            [*asked, ("resources/unsubscribe", {"uri": uris[1]}), ("logging/setLevel", {"level": "x"})]
        ):
            ends.say({"jsonrpc": "2.0", "id": number + 1, "method": method, "params": params})
            await ends.read()
        assert await McpSessionTable(database).expire(timedelta(0)) == 1
        async with reached(stocked.dependencies) as http:
            # Another front door remembers nothing of the session.
            own, ends.bridge.http = ends.bridge.http, http
            ends.say({"jsonrpc": "2.0", "id": "last", "method": "ping"})
            assert await ends.read() == {"jsonrpc": "2.0", "id": "last", "result": {}}
            ends.bridge.http = own
        (document,) = await database.scalars(select(mcp_sessions.c.document))
        session = McpSession.model_validate_json(document)
        assert (session.log_level, session.subscriptions) == ("error", (uris[0], uris[2]))


async def test_the_newer_revision_over_stdio(stocked: House) -> None:
    async with bridged(stocked) as ends:
        caller = Caller(httpx.AsyncClient(), NEW)
        ends.say(caller.request("tools/call", name="echo", arguments={"message": "hi"})[0])
        assert (await ends.read())["result"]["structuredContent"] == {"message": "hi"}
        ends.say(caller.request("resources/read", uri="toolagent://tools/größe")[0])
        assert (await ends.read())["error"]["code"] == -32602


async def test_what_the_newer_revision_cancels_ends(stocked: House) -> None:
    stocked.client.script = lambda _call, _call_id: None
    async with bridged(stocked) as ends:
        message, _ = Caller(httpx.AsyncClient(), NEW).request("tools/call", name="echo", arguments={})
        ends.say(message)
        async with asyncio.timeout(60):
            while not stocked.client.calls:  # noqa: ASYNC110 - the fake client tells nobody
                await asyncio.sleep(0)
        (call_id,) = stocked.client.calls
        ends.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message["id"]}})
        result = await stocked.client.result(call_id)
        assert result.error is not None
        assert result.error.type.value == "cancelled"


async def test_what_is_no_message_and_a_service_that_is_away_are_errors() -> None:
    async with httpx.AsyncClient(base_url="http://127.0.0.1:1") as http:
        ends = Ends(http)
        ends.say("no json")
        ends.say({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        ends.close()
        await ends.bridge.run(ends.lines())
        assert ((await ends.read())["error"]["code"], (await ends.read())["error"]["code"]) == (-32700, -32000)


async def test_what_python_reads_and_json_has_not_is_an_error_of_its_request(stocked: House) -> None:
    async with bridged(stocked) as ends:
        ends.say('{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"a": NaN}}')
        ends.say({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT})
        assert [(answer["id"], "error" in answer) for answer in [await ends.read() for _ in range(2)]] == [(0, True), (1, False)]
        ends.say('{"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": NaN}}')
        assert await ends.read() | {"error": None} == {"jsonrpc": "2.0", "id": None, "error": None}
        for number, message in enumerate(("NaN", '"\\ud800"')):
            ends.say(f'{{"jsonrpc": "2.0", "id": {number}, "method": "tools/call", "params": {{"name": "echo", "arguments": {message}}}}}')
            answer = await ends.read()
            assert (answer["id"], answer["error"]["code"]) == (number, -32700)
        message, _ = Caller(httpx.AsyncClient(), NEW).request("ü")
        ends.say(message)
        answer = await ends.read()
        assert (answer["id"], answer["error"]["code"]) == (message["id"], -32600)
        ends.say({"jsonrpc": "2.0", "id": "last", "method": "ping"})
        assert await ends.read() == {"jsonrpc": "2.0", "id": "last", "result": {}}


async def test_that_the_service_sends_no_notifications_is_said_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("toolagent.client.mcp_bridge._LISTENS_AGAIN_S", 0.01)
    refused = asyncio.Semaphore(0)

    async def answer(request: Request) -> Response:
        if request.method == "GET":
            refused.release()
            return JSONResponse({"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Too many."}}, 503)
        result = {"jsonrpc": "2.0", "id": "a", "result": {"protocolVersion": OLD}}
        return JSONResponse(result, headers={"Mcp-Session-Id": "s"}) if request.method == "POST" else Response()

    app = Starlette(routes=[Route("/mcp", answer, methods=["GET", "POST", "DELETE"])])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service") as http:
        ends = Ends(http)
        running = asyncio.create_task(ends.bridge.run(ends.lines()))
        ends.say({"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": CLIENT})
        ends.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        for _ in range(3):
            await asyncio.wait_for(refused.acquire(), 60)
        ends.say({"jsonrpc": "2.0", "id": "b", "method": "ping"})
        assert [(await ends.read())["id"] for _ in range(2)] == ["a", "b"]
        ends.close()
        await asyncio.wait_for(running, 60)
    assert "503" in capsys.readouterr().err
