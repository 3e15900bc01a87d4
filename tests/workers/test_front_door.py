"""The front door when the service stops."""

import asyncio
import socket

import httpx
import pytest
from fastapi import FastAPI

from workers.front_door import serving
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
        async with serving(app, listener, 0.5):
            waiting = asyncio.create_task(http.get("/wait"))
            await arrived.wait()
        with pytest.raises(httpx.TransportError):
            await waiting
    assert [record for record in caplog.records if record.levelname in {"ERROR", "CRITICAL"}] == []


async def test_a_server_that_nobody_waits_for_stops() -> None:
    listener = listen("127.0.0.1", 0, "PORT")
    address = listener.getsockname()
    async with serving(FastAPI(), listener, 0.5):
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
        async with serving(app, listener, 20):
            waiting = asyncio.create_task(http.get("/wait"))
            await arrived.wait()
            asyncio.get_running_loop().call_later(0.3, release.set)
        assert (await waiting).json() == "done"
