"""Sends the head and the body of an answer together: each write on its own is a system call, and wakes the client."""

import asyncio

_MOST_BYTES = 64 * 1024
"""More is not held: the transport bounds its own buffer."""


class JoinedWrites:
    """A transport that sends at the end of a turn of the event loop what was written during it. Otherwise like the given one."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport, self._loop = transport, asyncio.get_running_loop()
        self._held: list[bytes] = []
        self._bytes = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self._send)
        self._held.append(data)
        self._bytes += len(data)
        if self._bytes > _MOST_BYTES:
            self._send()

    def close(self) -> None:
        self._send()
        self._transport.close()

    def _send(self) -> None:
        held, self._held, self._bytes = self._held, [], 0
        if held and not self._transport.is_closing():
            self._transport.write(b"".join(held))
