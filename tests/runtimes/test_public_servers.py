"""A server that a stranger's document names is judged by its address at each call, not by what its name led to once."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.runtimes.failures import NotSent
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.public_servers import PublicServers
from engine.runtimes.http.runtime import RemoteRuntime
from engine.runtimes.runtime import ToolRequest
from tests.runtimes.conftest import silent
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import RemoteSource

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
        http = HttpExchange(tls=ssl.create_default_context(), public=public)
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
