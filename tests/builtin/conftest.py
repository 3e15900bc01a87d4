"""A real HTTP server on 127.0.0.1 with the answers of the test."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

__all__ = ["Site"]


@dataclass
class Site:
    """`answers` holds raw HTTP responses by path; a path that is not there is never answered. `seen` holds raw requests."""

    port: int = 0
    answers: dict[str, bytes] = field(default_factory=dict[str, bytes])
    seen: list[bytes] = field(default_factory=list[bytes])
    connections: int = 0

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def answer(self, path: str, body: bytes = b"", status: int = 200, **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.answers[path] = "\r\n".join([*lines, "", ""]).encode("latin-1") + body

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._exchange(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left: some of these tests are about that
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        self.seen.append(head + await reader.readexactly(sum(length)))
        answer = self.answers.get(head.split(b" ")[1].decode().partition("?")[0])
        if answer is None:
            await reader.read()  # until the client gives up
            return
        writer.write(answer)
        await writer.drain()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    found = Site()
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    async with server:
        yield found
