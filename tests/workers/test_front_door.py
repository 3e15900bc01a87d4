"""The front door when the service stops."""

import asyncio
import socket

import httpx
import pytest
from fastapi import FastAPI, Request
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from workers.front.door import MAX_HEAD_BYTES, serving
from workers.grace import Grace
from workers.ports import listen


async def test_a_client_that_waits_when_the_service_stops_is_left_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    app, arrived = FastAPI(), asyncio.Event()

    @app.get("/wait")
    async def wait() -> None:  # pyright: ignore[reportUnusedFunction] - the app has it
        arrived.set()
        await asyncio.Event().wait()

    listener = listen("127.0.0.1", 0, "PORT")
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with httpx.AsyncClient(base_url=address, timeout=60, trust_env=False) as http:
        async with serving(app, listener, Grace(0.5)):
            waiting = asyncio.create_task(http.get("/wait"))
            await arrived.wait()
        with pytest.raises(httpx.TransportError):
            await waiting
    assert [record for record in caplog.records if record.levelname in {"ERROR", "CRITICAL"}] == []


async def test_each_request_of_a_client_that_sends_several_at_once_hears_that_it_left() -> None:
    heard = asyncio.Queue[str]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (message := await receive())["type"] != "http.disconnect":
            await heard.put(message["type"])
        await heard.put(message["type"])

    listener = listen("127.0.0.1", 0, "PORT")
    async with asyncio.timeout(10), serving(Starlette(routes=[Mount("/", app)]), listener, Grace(0.5)):
        _, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 2)
        assert await heard.get() == "http.request"
        writer.close()
        assert await heard.get() == "http.disconnect"


async def test_a_head_without_end_is_refused_before_it_is_held() -> None:
    listener = listen("127.0.0.1", 0, "PORT")
    async with serving(FastAPI(), listener, Grace(0.5)):
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * (2 * MAX_HEAD_BYTES))
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 431 ")
        writer.close()


async def test_a_large_body_behind_an_ordinary_head_is_taken_and_so_is_the_next_request() -> None:
    app = FastAPI()

    @app.post("/size")
    async def size(request: Request) -> int:  # pyright: ignore[reportUnusedFunction] - the app has it
        return len(await request.body())

    listener = listen("127.0.0.1", 0, "PORT")
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with serving(app, listener, Grace(0.5)), httpx.AsyncClient(base_url=address, trust_env=False) as http:
        for length in (4 * MAX_HEAD_BYTES, 10, 4 * MAX_HEAD_BYTES):
            answer = await http.post("/size", content=b"a" * length, headers={"X-Some": "b" * 30_000})
            assert (answer.status_code, answer.json()) == (200, length)


async def test_a_server_that_nobody_waits_for_stops() -> None:
    listener = listen("127.0.0.1", 0, "PORT")
    address = listener.getsockname()
    async with serving(FastAPI(), listener, Grace(0.5)):
        pass
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(address)


async def test_a_call_that_ends_while_the_service_stops_is_answered() -> None:
    app, arrived, release = FastAPI(), asyncio.Event(), asyncio.Event()

    @app.get("/wait")
    async def wait() -> str:  # pyright: ignore[reportUnusedFunction] - the app has it
        arrived.set()
        await release.wait()
        return "done"

    listener = listen("127.0.0.1", 0, "PORT")
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with httpx.AsyncClient(base_url=address, timeout=60, trust_env=False) as http:
        async with serving(app, listener, Grace(20)):
            waiting = asyncio.create_task(http.get("/wait"))
            await arrived.wait()
            asyncio.get_running_loop().call_later(0.3, release.set)
        assert (await waiting).json() == "done"
