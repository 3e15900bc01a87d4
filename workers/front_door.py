"""The HTTP server, in the same event loop as everything else."""

import asyncio
import ipaddress
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from fastapi import FastAPI

from workers.failures import CannotRun
from workers.ports import listen
from workers.settings import Settings

__all__ = ["bound_socket", "serving"]

_SHUTDOWN_S = 3


class _Server(uvicorn.Server):
    """Leaves signals to us: the whole service stops in order, not the web server alone. Says when it answers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answers = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answers.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def bound_socket(settings: Settings) -> socket.socket:
    """Raises CannotRun when the port is taken, or when the service would be open to others without a key."""
    if settings.api_key is None and not _is_loopback(settings.fastapi_host):
        raise CannotRun(
            f"TOOL_AGENT_FASTAPI_HOST is {settings.fastapi_host!r}, which others can reach. "
            "Set TOOL_AGENT_API_KEY too, or listen on 127.0.0.1."
        )
    return listen(settings.fastapi_host, settings.fastapi_port, "TOOL_AGENT_FASTAPI_PORT")


@asynccontextmanager
async def serving(app: FastAPI, listener: socket.socket) -> AsyncGenerator[None]:
    """Answer requests until the block ends."""
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=_SHUTDOWN_S, server_header=False
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]), name="http")
    try:
        await server.answers.wait()
        yield
    finally:
        server.should_exit = True
        await task
        listener.close()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
