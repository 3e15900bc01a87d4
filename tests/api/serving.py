"""A real server for the dependencies of a test."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import uvicorn

from api.app import create_app, end_streams, running_mcp
from api.ports import Dependencies


@asynccontextmanager
async def served(dependencies: Dependencies) -> AsyncGenerator[str]:
    """The URL of a real server. It listens from the beginning, so no wait is needed."""
    listening = socket.create_server(("127.0.0.1", 0))
    app = create_app(dependencies)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    running = asyncio.create_task(server.serve([listening]))
    try:
        async with running_mcp(app):
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        end_streams(app)
        await asyncio.wait_for(running, 60)


@asynccontextmanager
async def reached(dependencies: Dependencies) -> AsyncGenerator[httpx.AsyncClient]:
    async with served(dependencies) as url, httpx.AsyncClient(base_url=url, timeout=20) as http:
        yield http
