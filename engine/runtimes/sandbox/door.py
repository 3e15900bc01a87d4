"""Hands the program in a sandbox the socket it serves on, so that it needs no folder of the host it could write to."""

import asyncio
import contextlib
import socket
from pathlib import Path

import structlog

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_BACKLOG = 128
_MOST = 64
"""Sockets that are handed over and not taken count against our limit: a program that keeps asking gets no more."""
_AGAIN_S = 1.0


class Door:
    """Each connection to `listening`, a unix socket, gets a socket that listens at `tool`; the previous one becomes useless."""

    def __init__(self, listening: socket.socket, tool: Path) -> None:
        self._listening, self._tool = listening, tool
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._listening.setblocking(False)
        self._task = asyncio.create_task(self._serve())

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._listening.close()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        handed = 0
        while handed < _MOST:
            try:
                asking, _ = await loop.sock_accept(self._listening)
            except OSError as error:
                # All our descriptors may be taken, for a moment.
                _log.warning("door_not_opened", tool=str(self._tool), reason=str(error))
                await asyncio.sleep(_AGAIN_S)
                continue
            handed += 1
            with asking, contextlib.suppress(OSError):
                self._hand_over(asking)
        self._listening.close()

    def _hand_over(self, asking: socket.socket) -> None:
        self._tool.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as serving:
            serving.bind(str(self._tool))
            self._tool.chmod(0o600)
            serving.listen(_BACKLOG)
            socket.send_fds(asking, [b"\0"], [serving.fileno()])
