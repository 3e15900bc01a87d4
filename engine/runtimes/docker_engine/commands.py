"""Runs commands in containers that are up."""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, cast

from docker.utils import socket as streams  # pyright: ignore[reportMissingTypeStubs] - it has none; `_frames` says what is used

from engine.runtimes.docker_engine.engine import Api, Engine, EngineFailure

TIMED_OUT = 124
_STDOUT = 1
_END_S = 10.0
_MARGIN_S = 15.0
"""More than the end of a command may take."""


@dataclass(frozen=True, slots=True)
class Executed:
    """How a command ended; `exit_code` is 124 after a time-out. A truncated output ends with a note; `truncated` names these streams."""

    exit_code: int
    stdout: str
    stderr: str
    truncated: tuple[str, ...] = ()


class _Closable(Protocol):
    def close(self) -> None: ...


class _Connection(Protocol):
    """The output of a started command, as the library returns it."""

    _response: _Closable

    def fileno(self) -> int: ...


_frames = cast("Callable[[_Connection, bool], Iterator[tuple[int, bytes]]]", streams.frames_iter)  # pyright: ignore[reportUnknownMemberType] - not typed


class _Text:
    """The first `most` bytes of one stream."""

    def __init__(self, most: int) -> None:
        self._most, self._kept, self.is_cut = most, bytearray(), False

    def add(self, part: bytes) -> None:
        room = self._most - len(self._kept)
        self._kept += part[:room]
        self.is_cut |= len(part) > room

    def __str__(self) -> str:
        note = f"\n[… cut after {self._most} bytes]" if self.is_cut else ""
        return self._kept.decode(errors="replace") + note


class Command:
    """One command in a running container. At most `most` bytes of each stream are kept."""

    def __init__(self, container: str, argv: Sequence[str], most: int, environment: Mapping[str, str]) -> None:
        self._container, self._argv, self._environment = container, [*argv], dict(environment)
        self._out, self._err = _Text(most), _Text(most)
        self._turn = threading.Lock()
        self._connection: _Connection | None = None
        self._is_over = False
        self._run = ""

    def execute(self, api: Api) -> Executed:
        """Run until the command ends, or until `leave`. Blocks."""
        self._run = str(api.exec_create(self._container, self._argv, environment=self._environment)["Id"])
        if self._is_over:
            return self._executed(TIMED_OUT)
        connection = cast("_Connection", api.exec_start(self._run, socket=True))
        with self._turn:
            self._connection = connection
        try:
            if not self._is_over:
                self._follow(connection)
        finally:
            with self._turn:
                self._connection = None
                # The library leaves it open until it is collected.
                connection._response.close()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - there is no public way to it
        return self._executed(TIMED_OUT if self._is_over else int(api.exec_inspect(self._run)["ExitCode"] or 0))

    def leave(self) -> None:
        """Stop listening and keep the output so far. Called from another thread."""
        with self._turn:
            self._is_over = True
            if self._connection is not None:
                # Closing it does not wake its reader.
                with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self._connection.fileno())) as same:
                    same.shutdown(socket.SHUT_RDWR)

    def first(self, api: Api) -> int | None:
        """The pid of the first process, inside the container. None if it has ended, or if the engine is on another machine. Blocks."""
        if not self._run or not (told := api.exec_inspect(self._run)).get("Running"):
            return None
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{told['Pid']}/status").read_text(encoding="ascii", errors="replace").splitlines():
                if line.startswith("NSpid:"):
                    return int(line.split()[-1])
        return None

    def _follow(self, connection: "_Connection") -> None:
        try:
            for stream, part in _frames(connection, False):
                (self._out if stream == _STDOUT else self._err).add(part)
        except OSError:
            if not self._is_over:
                raise

    def _executed(self, code: int) -> Executed:
        truncated = tuple(name for name, text in (("stdout", self._out), ("stderr", self._err)) if text.is_cut)
        return Executed(code, str(self._out), str(self._err), truncated)


async def run_within(engine: Engine, command: Command, timeout_s: float, end: Callable[[], Awaitable[object]]) -> Executed:
    """Wait for the command. After `timeout_s` seconds, or when cancelled, `end` ends it, and its thread is freed. Raises EngineFailure."""
    work = asyncio.ensure_future(engine.work(command.execute, timeout_s + _MARGIN_S))
    try:
        done, _ = await asyncio.wait({work}, timeout=timeout_s)
    except asyncio.CancelledError:
        await asyncio.shield(_left(command, work, end))
        raise
    return work.result() if done else await asyncio.shield(_left(command, work, end))


async def _left(command: Command, work: asyncio.Future[Executed], end: Callable[[], Awaitable[object]]) -> Executed:
    with contextlib.suppress(EngineFailure, TimeoutError):
        async with asyncio.timeout(_END_S):
            await end()
    command.leave()
    return replace(await work, exit_code=TIMED_OUT)


def begin(api: Api, container: str, argv: list[str]) -> None:
    """Start a command without waiting for its end. Blocks briefly."""
    api.exec_start(str(api.exec_create(container, argv, stdout=False, stderr=False)["Id"]), detach=True)
