"""Connects a server's stdin and stdout to the SDK's session."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCRequest

from engine.runtimes.mcp.codes import NOT_SENT
from engine.runtimes.mcp.lines import Line, Lines, message_of

_CHUNK = 64 * 1024
_LARGE_BYTES = 64 * 1024
"""Longer lines are parsed in a thread, so that the event loop stays free."""

_WAITING = 32
_DEAF_S = 1.0
_SHOWN_BYTES = 4096

Streams: TypeAlias = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@dataclass(slots=True)
class Pipes:
    """`read` and `write` are our ends, `given` become the server's stdin and stdout."""

    read: int
    write: int
    given: tuple[int, int]
    is_open: bool = True

    @classmethod
    def make(cls) -> "Pipes":
        """Raises OSError."""
        stdin, write = os.pipe()
        try:
            read, stdout = os.pipe()
        except OSError:
            os.close(stdin)
            os.close(write)
            raise
        for ours in (read, write):
            os.set_blocking(ours, False)
        return cls(read, write, (stdin, stdout))

    def close_given(self) -> None:
        """Closes the server's ends. Without this, the server's exit is never seen."""
        for fd in self.given:
            os.close(fd)

    def close(self) -> None:
        """Closes our ends. Idempotent."""
        if self.is_open:
            self.is_open = False
            os.close(self.read)
            os.close(self.write)


@contextlib.asynccontextmanager
async def over_pipes(pipes: Pipes, most_bytes: int, max_values: int, stray: Callable[[bytes], None]) -> AsyncGenerator[Streams]:
    """Closes our ends at the end. `stray` receives output that is not a message, cut if it is long."""
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, outgoing = anyio.create_memory_object_stream[SessionMessage](_WAITING)
    reading = _Reading(pipes.read, incoming, Lines(most_bytes), max_values, stray)
    try:
        async with incoming, received, sent, outgoing, anyio.create_task_group() as tasks:
            tasks.start_soon(reading.run)
            tasks.start_soon(_write, pipes.write, outgoing, incoming)
            yield received, sent
            tasks.cancel_scope.cancel()
    finally:
        pipes.close()


@dataclass(frozen=True, slots=True)
class _Reading:
    fd: int
    messages: MemoryObjectSendStream[SessionMessage | Exception]
    lines: Lines
    max_values: int
    stray: Callable[[bytes], None]

    async def run(self) -> None:
        """Reads until the server closes its stdout. Then the session sees the end."""
        # The session may have left.
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with self.messages:
                while chunk := await _received(self.fd):
                    for line in self.lines.feed(chunk):
                        await self._take(line)

    async def _take(self, line: Line) -> None:
        is_large = len(line.text) > _LARGE_BYTES
        message = await asyncio.to_thread(message_of, line, self.max_values) if is_large else message_of(line, self.max_values)
        if message is not None:
            await self.messages.send(SessionMessage(message))
            return
        cut = f"… [{line.size} bytes]".encode() if line.size > _SHOWN_BYTES else b""
        self.stray(line.text[:_SHOWN_BYTES] + cut + b"\n")
        # A server that writes without pause must not starve other servers.
        await asyncio.sleep(0)


async def _write(
    fd: int, messages: MemoryObjectReceiveStream[SessionMessage], answers: MemoryObjectSendStream[SessionMessage | Exception]
) -> None:
    async with messages:
        async for one in messages:
            data = one.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            if (left := await _unsent(fd, data)) == 0:
                continue
            # The server's stdin is closed. The rest of its output is still read; then the connection ends.
            with anyio.move_on_after(_DEAF_S):
                if left == len(data):
                    await _refuse(one, answers)
                async for another in messages:
                    await _refuse(another, answers)
            await answers.aclose()
            return


async def _refuse(one: SessionMessage, answers: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    """Answers a request of which nothing was sent, so that the caller may repeat it."""
    if isinstance(one.message, JSONRPCRequest):
        error = ErrorData(code=NOT_SENT, message="The server has closed its stdin.")
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await answers.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=one.message.id, error=error)))


async def _received(fd: int) -> bytes:
    """The next bytes; empty at the end."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return os.read(fd, _CHUNK)
        except BlockingIOError:
            await _ready(fd, loop.add_reader, loop.remove_reader)
        except OSError:
            return b""


async def _unsent(fd: int, data: bytes) -> int:
    """Writes the data. Returns how many bytes are left if the other side has closed."""
    left, loop = memoryview(data), asyncio.get_running_loop()
    while left:
        try:
            left = left[os.write(fd, left) :]
        except BlockingIOError:
            await _ready(fd, loop.add_writer, loop.remove_writer)
        except OSError:
            break
    return len(left)


async def _ready(fd: int, add: Callable[[int, Callable[[], object]], object], remove: Callable[[int], object]) -> None:
    ready = asyncio.get_running_loop().create_future()
    add(fd, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        remove(fd)
