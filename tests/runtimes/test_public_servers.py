"""The server of a third party's document is judged by its address at each call, not only once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from engine.runtimes.failures import CallFailed, NotSent
from engine.runtimes.http.destination import BeforeSending, Destinations
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.public_servers import PublicServers
from engine.runtimes.http.runtime import RemoteRuntime
from engine.runtimes.runtime import ToolRequest
from tests.runtimes.conftest import silent
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import Envelope, RemoteSource
from toolagent.testing.servers.serving import ServerThread

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"
TOOL = ToolManifest(tool_id="far", name="Far")
REQUEST = ToolRequest("call-12345678", {}, 10.0, Path("/nonexistent"))


async def to_this_machine(host: str, port: int) -> list[str]:
    return await asyncio.sleep(0, ["127.0.0.1"])


@asynccontextmanager
async def server() -> AsyncGenerator[tuple[int, list[bytes]]]:
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        yield listening.sockets[0].getsockname()[1], asked


@pytest.mark.parametrize(("only_public", "is_named", "reached"), [(True, False, False), (True, True, True), (False, False, True)])
async def test_a_name_that_leads_to_this_machine_now_is_not_called(*, only_public: bool, is_named: bool, reached: bool) -> None:
    async with server() as (port, asked):
        host = "rebound.test" if only_public else "127.0.0.1"
        public = PublicServers((f"{host}:{port}",) if is_named else (), to_this_machine)
        http = HttpExchange(public=public)
        source = RemoteSource(remote_url=f"http://{host}:{port}", http_method="GET", only_public=only_public)
        runtime = RemoteRuntime(http, dict[str, str]().get)
        running = await runtime.start(TOOL, source, silent)
        try:
            if reached:
                assert await runtime.call(running, source, REQUEST) == {}
                assert f"host: {host}:{port}".encode() in asked[0].lower()
            else:
                with pytest.raises(NotSent) as refused:
                    await runtime.call(running, source, REQUEST)
                assert refused.value.error_type is ErrorType.SECURITY_ERROR
            assert (await http.health(running.endpoint, "/", 10.0, only_public=only_public) is not None) is reached
        finally:
            await http.aclose()
    assert bool(asked) is reached


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_tool_of_an_external_table_is_called_where_tables_may_lead(*, allowed: bool) -> None:
    async with server() as (port, asked):
        table = Destinations(("rebound.test",) if allowed else (), to_this_machine, "TOOL_AGENT_EXTERNAL_TOOLS_ALLOW")
        http = HttpExchange(public=PublicServers(("rebound.test",), to_this_machine))
        runtime = RemoteRuntime(http, dict[str, str]().get, http.with_judge(BeforeSending(table)))
        source = RemoteSource(remote_url=f"http://rebound.test:{port}", only_public=True, table="shop")
        running = await runtime.start(TOOL, source, silent)
        try:
            if allowed:
                assert await runtime.call(running, source, REQUEST) == {}
            else:
                with pytest.raises(NotSent, match="TOOL_AGENT_EXTERNAL_TOOLS_ALLOW"):
                    await runtime.call(running, source, REQUEST)
        finally:
            await http.aclose()
        assert len(asked) == allowed


@pytest.mark.parametrize(("answer", "result"), [({"status": "success", "result": [1]}, [1]), ({"status": "success"}, None), ([], None)])
async def test_where_one_path_serves_many_tools_parameters_and_result_are_wrapped(answer: JsonValue, result: JsonValue) -> None:
    bodies: list[JsonValue] = []

    async def run_tool(request: Request) -> Response:
        bodies.append(await request.json())
        return JSONResponse(answer)

    async with ServerThread(Starlette(routes=[Route("/run_tool", run_tool, methods=["POST"])])) as far:
        http = HttpExchange()
        runtime = RemoteRuntime(http, dict[str, str]().get)
        envelope = Envelope(params_field="params", fixed={"tool_id": "echo"}, result_field="result")
        source = RemoteSource(remote_url=far.url, endpoint_path="/run_tool", envelope=envelope)
        running = await runtime.start(TOOL, source, silent)
        try:
            if result is not None:
                assert await runtime.call(running, source, replace(REQUEST, params={"a": 1})) == result
            else:
                with pytest.raises(CallFailed, match="'result'"):
                    await runtime.call(running, source, replace(REQUEST, params={"a": 1}))
        finally:
            await http.aclose()
    assert bodies == [{"tool_id": "echo", "params": {"a": 1}}]
