"""The proxy of one session: passes allowed requests on to the proxy of the sandbox, and remembers refusals.

The sandbox's proxy answers one request for each connection, so checking the first request of a connection checks all of it.
"""

import asyncio
import contextlib
from urllib.parse import urlsplit

from hosts import is_allowed

LOOPBACK = "127.0.0.1"
HEAD = 128 * 1024
PIECE = 64 * 1024
KEPT = 100
TOLD = 500
PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


class Gateway:
    """`upstream` is the address of the sandbox's proxy, such as `http://127.0.0.1:3128`; empty if the sandbox reaches no host."""

    def __init__(self, allowed: list[str], upstream: str) -> None:
        self.allowed, self.upstream = allowed, urlsplit(upstream)
        self.refused: dict[str, str] = {}
        self.server: asyncio.Server | None = None
        self.tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Returns its address."""
        self.server = await asyncio.start_server(self.accept, LOOPBACK, 0, limit=HEAD)
        return f"http://{LOOPBACK}:{self.server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        if self.server is not None:
            self.server.close()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self.serve(reader, writer))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with closing(writer):
                head = await reader.readuntil(b"\r\n\r\n")
                host, port = target_of(head)
                if why := self.why_not(host, port):
                    await self.refuse(writer, host, port, why)
                else:
                    await self.relay(head, (host, port), (reader, writer))

    def why_not(self, host: str, port: int) -> str:
        """The reason for a refusal; empty if the host is allowed."""
        if not is_allowed(self.allowed, host, port):
            return f"it is not among the allowed_hosts of this session ({', '.join(self.allowed[:10])}). A port other than 80 and 443 has to be named there."
        return "" if self.upstream.hostname else "the policy of this service allows this tool no host."

    def note(self, host: str, port: int, why: str) -> None:
        if len(self.refused) < KEPT:
            self.refused[joined(host, port)] = why

    async def refuse(self, writer: asyncio.StreamWriter, host: str, port: int, why: str) -> None:
        self.note(host, port, why)
        body = f"{joined(host, port)} may not be reached: {why}\n".encode()
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()

    async def relay(self, head: bytes, target: tuple[str, int], near: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        reader, writer = near
        far_reader, far_writer = await asyncio.open_connection(self.upstream.hostname, self.upstream.port, limit=HEAD)
        async with closing(far_writer):
            far_writer.write(head)
            sending = asyncio.create_task(copy(reader, far_writer))
            try:
                answer = await far_reader.readuntil(b"\r\n\r\n")
                # The sandbox's proxy marks its own refusals. Without the mark, the answer is the server's.
                if b"proxy-status: tool-agent" in answer.lower():
                    said = await far_reader.read(HEAD)
                    self.note(*target, said.decode(errors="replace").removeprefix("tool-agent sandbox: ").strip()[:TOLD])
                    answer += said
                writer.write(answer)
                await copy(far_reader, writer)
            finally:
                sending.cancel()


@contextlib.asynccontextmanager
async def closing(writer: asyncio.StreamWriter):
    try:
        yield
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


def target_of(head: bytes) -> tuple[str, int]:
    """Host and port of `CONNECT host:port` or `GET http://host/…`. Raises ValueError."""
    method, address, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
    found = urlsplit(f"//{address}" if method == "CONNECT" else address)
    if not found.hostname:
        raise ValueError(address)
    return found.hostname, found.port or PORTS[found.scheme]


def place_of(url: str) -> str:
    """`host:port` of an address; empty without a host. Raises ValueError."""
    found = urlsplit(url)
    return joined(found.hostname, found.port or PORTS.get(found.scheme, 0)) if found.hostname else ""


def joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
