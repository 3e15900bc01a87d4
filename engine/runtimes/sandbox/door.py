"""Hands the program in a sandbox the socket it serves on, so that it needs no folder of the host it could write to."""

import asyncio
import contextlib
import socket
from pathlib import Path

import structlog

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_BACKLOG = 1024
"""Callers wait here while the program's own queue is full. Who finds no place is refused."""
_MOST = 64
"""Sockets that are handed over and not taken count against our limit: a program that keeps asking gets no more."""
_AGAIN_S = 1.0


class Door:
    """Each connection to `listening`, a unix socket, gets a socket that listens at `tool`; the previous one becomes useless."""

    def __init__(self, listening: socket.socket, tool: Path) -> None:
        self._listening, self._tool = listening, tool
        self._handed = 0
        self._again: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._listening.setblocking(False)
        # A task that accepts would leave a connection open if it was cancelled in that moment.
        asyncio.get_running_loop().add_reader(self._listening, self._answer)

    def close(self) -> None:
        self._pause()
        if self._again is not None:
            self._again.cancel()
        self._listening.close()

    def _pause(self) -> None:
        if self._listening.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._listening)

    def _answer(self) -> None:
        try:
            asking, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            # All our descriptors may be taken, for a moment.
            _log.warning("door_not_opened", tool=str(self._tool), reason=str(error))
            self._pause()
            self._again = asyncio.get_running_loop().call_later(_AGAIN_S, self.start)
            return
        with asking, contextlib.suppress(OSError):
            self._hand_over(asking)
        self._handed += 1
        if self._handed == _MOST:
            self.close()

    def _hand_over(self, asking: socket.socket) -> None:
        self._tool.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as serving:
            serving.bind(str(self._tool))
            self._tool.chmod(0o600)
            serving.listen(_BACKLOG)
            socket.send_fds(asking, [b"\0"], [serving.fileno()])
