"""Servers on this machine in place of the internet, and a client that sends raw bytes to the proxy."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from engine.network.proxy import Proxy, ProxyLimits, Room
from engine.network.proxy_rules import Asks, Rules

__all__ = ["Site", "proxied", "say", "site"]

_BOUND_S = 60.0
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@dataclass(slots=True)
class Site:
    """A server with a fixed answer that records what it receives."""

    port: int = 0
    seen: list[bytes] = field(default_factory=list[bytes])
    answer: bytes = OK


@contextlib.asynccontextmanager
async def site(
    answer: bytes = OK, *, speak: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]] | None = None
) -> AsyncGenerator[Site]:
    made = Site(answer=answer)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            if speak is not None:
                await speak(reader, writer)
            else:
                made.seen.append(await reader.read(65536))
                writer.write(made.answer)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()


@contextlib.asynccontextmanager
async def proxied(path: Path, rules: Rules, limits: ProxyLimits | None = None, places: int = 100) -> AsyncGenerator[Proxy]:
    """A proxy that listens at `path`."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    proxy = Proxy(rules, Asks(), limits or ProxyLimits(), Room(places))
    await proxy.start(listening)
    try:
        yield proxy
    finally:
        await proxy.aclose()


async def say(path: Path, text: bytes, *, end: bool = False) -> bytes:
    """Send bytes to the proxy; returns everything until it closes."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        async with asyncio.timeout(_BOUND_S):
            with contextlib.suppress(OSError):
                writer.write(text)
                await writer.drain()
                if end:
                    writer.write_eof()
            return await reader.read(-1)
    finally:
        writer.close()
