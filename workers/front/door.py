"""The HTTP server and the MCP server, in the event loop of the process."""

import asyncio
import ipaddress
import logging
import math
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from datetime import timedelta

import structlog
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from api.app import create_mcp_app, end_streams, running_mcp
from engine.store.mcp_sessions import McpSessionTable
from engine.upkeep.rounds import repeated
from toolagent.core.failures import StoreUnavailableError
from workers.failures import CannotRun
from workers.grace import Grace
from workers.ports import listen
from workers.settings.front import FrontSettings
from workers.settings.whole import Settings

_SHUTDOWN_S = 3
_SWEEP_S = 60.0

_log = structlog.stdlib.get_logger(__name__)

MAX_HEAD_BYTES = 64 * 1024
"""A longer head is refused before all of it is in memory. The server itself has no limit."""

_BODY = b'{"type":"headers_too_large","title":"Headers too large","status":431,"detail":"The head of a request may have 65536 bytes."}'
_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/problem+json\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(_BODY), _BODY)
)


class _Server(uvicorn.Server):
    """Leaves signals to us, so that the whole service stops in order, and reports when it answers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answers = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.answers.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def bound_socket(settings: FrontSettings) -> socket.socket:
    """The socket of the API. Raises CannotRun if the port is taken, or the service would be open to others without a key."""
    if settings.api_key is None and not _is_loopback(settings.fastapi_host):
        raise CannotRun(
            f"TOOL_AGENT_FASTAPI_HOST is {settings.fastapi_host!r}, which others can reach. "
            "Set TOOL_AGENT_API_KEY too, or listen on 127.0.0.1."
        )
    return listen(settings.fastapi_host, settings.fastapi_port, "TOOL_AGENT_FASTAPI_PORT")


@asynccontextmanager
async def serving(app: Starlette, listener: socket.socket, grace: Grace) -> AsyncGenerator[None]:
    """Answer requests until the block ends. Connections whose requests are not answered within `grace` are closed."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=math.ceil(grace.seconds) + 3 * _SHUTDOWN_S,
        server_header=False,
        http=BoundedHead,
        ws="none",
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]), name="http")
    try:
        await server.answers.wait()
        yield
    finally:
        server.should_exit = True
        end_streams(app)
        await asyncio.wait((task,), timeout=grace.left_s)
        with _without_remarks():
            await _close_waiting(server)
            await task
        listener.close()


@asynccontextmanager
async def answering_mcp(app: FastAPI, table: McpSessionTable, settings: Settings, grace: Grace) -> AsyncGenerator[None]:
    """Run the MCP server until the block ends. Raises CannotRun if its own port is taken."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(running_mcp(app))
        await stack.enter_async_context(_swept(table, timedelta(seconds=settings.mcp.mcp_session_idle_s)))
        port = settings.mcp.mcp_port
        if port is not None and port != settings.front.fastapi_port:
            listener = listen(settings.front.fastapi_host, port, "TOOL_AGENT_MCP_PORT")
            stack.callback(listener.close)
            await stack.enter_async_context(serving(create_mcp_app(app), listener, grace))
        yield


def _swept(table: McpSessionTable, idle: timedelta) -> AbstractAsyncContextManager[None]:
    async def sweep() -> None:
        try:
            if closed := await table.expire(idle):
                _log.info("mcp_sessions_closed", sessions=closed, reason="nobody used them")
        except StoreUnavailableError as error:
            _log.info("mcp_sessions_not_swept", reason=str(error))

    return repeated(sweep, _SWEEP_S, "sweep of MCP sessions")


async def never_ended() -> None:
    """Wait for ever: a front door alone has no part that could end by itself."""
    await asyncio.Event().wait()


@contextmanager
def _without_remarks() -> Generator[None]:
    """Silence the server, which would log a traceback for each request that we cancel."""
    logger = logging.getLogger("uvicorn.error")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


async def _close_waiting(server: _Server) -> None:
    """Close the connections of clients that still wait. Their calls go on; a request with the same key finds them."""
    requests = list(server.server_state.tasks)
    for connection in list(server.server_state.connections):
        connection.transport.abort()
    for request in requests:
        request.cancel()
    if requests:
        await asyncio.wait(requests, timeout=_SHUTDOWN_S)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class BoundedHead(HttpToolsProtocol):
    """Answers 431 and closes the connection if the request line and headers have more than `MAX_HEAD_BYTES` bytes."""

    _is_in_head = True
    _head_bytes = 0
    _running: RequestResponseCycle | None = None

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def connection_lost(self, exc: Exception | None) -> None:
        # The server tells the last request of those that a client sent at once. The one that runs would write to a closed connection.
        if self._running is not None:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        self._is_in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # Bytes that came with the end of the head are not counted, because they are in memory already.
        self._head_bytes += len(data)
        if self._is_in_head and self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(_REFUSAL)
            self.transport.close()
