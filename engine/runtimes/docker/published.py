"""Ports of this machine that lead into containers: the worker listens and forwards to a unix socket.

The engine's own way would be a network between the container and this machine, which is open in both directions.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

from engine.network.ports import LOOPBACK
from engine.network.proxy_streams import Stream, tunnel

_MOST = 256
_LINGER_S = 1.0
_LAST_PORT = 65535

Touch = Callable[[], None]


class PublishedPorts:
    """The ports of all containers of this worker, on the loopback only, as long as this worker lives."""

    def __init__(self) -> None:
        self._doors: dict[str, dict[int, _Door]] = {}

    async def open(self, name: str, sockets: Mapping[int, Path], first: int, wanted: Mapping[int, int], touch: Touch) -> dict[int, int]:
        """Open the ports of a container; returns theirs here. Each takes its port of `wanted`, if free, else the next free from `first`.

        `touch` is called at each connection. Raises OSError if no port is free.
        """
        doors = self._doors.setdefault(name, {})
        try:
            for port, path in sockets.items():
                doors[port] = await _opened(_Door(path, touch), wanted.get(port, first), first)
        except BaseException:
            await self.close(name)
            raise
        return {port: door.port for port, door in doors.items()}

    def address_of(self, name: str, port: int) -> str | None:
        door = self._doors.get(name, {}).get(port)
        return f"http://{LOOPBACK}:{door.port}" if door is not None else None

    async def close(self, name: str) -> None:
        for door in self._doors.pop(name, {}).values():
            await door.aclose()


class _Door:
    def __init__(self, path: Path, touch: Touch) -> None:
        self._path, self._touch = path, touch
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def listen(self, port: int) -> None:
        """Raises OSError if the port is taken."""
        self._server = await asyncio.start_server(self._accept, LOOPBACK, port)
        self.port = port

    async def aclose(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= _MOST:
            writer.close()
            return
        task = asyncio.create_task(self._serve(Stream(reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, near: Stream) -> None:
        self._touch()
        try:
            with contextlib.suppress(OSError):
                far = Stream(*await asyncio.open_unix_connection(str(self._path)))
                try:
                    await tunnel(near, far, b"", self._touch, lambda _: True)
                except* OSError:
                    pass  # a client that hangs up is not a failure
                finally:
                    await far.close(_LINGER_S)
        finally:
            await near.close(_LINGER_S)


async def _opened(door: _Door, wanted: int, first: int) -> _Door:
    for port in (wanted, *range(first, _LAST_PORT)):
        with contextlib.suppress(OSError):
            await door.listen(port)
            return door
    raise OSError(f"No port from {first} on is free.")
