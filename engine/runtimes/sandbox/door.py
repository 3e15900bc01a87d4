"""Hands the program in a sandbox its listening socket, so that it needs no writable folder of the host."""

import asyncio
import contextlib
import socket
from pathlib import Path

import structlog

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_BACKLOG = 1024
"""Callers wait in this queue while the program's own is full. Further ones are refused."""
_MOST = 64
"""Sockets handed over but not received count against our limit, so a program gets no more than these."""
_AGAIN_S = 1.0


class Door:
    """Each connection to the unix socket `listening` gets a new socket that listens at `tool`, which replaces the previous one."""

    def __init__(self, listening: socket.socket, tool: Path) -> None:
        self._listening, self._tool = listening, tool
        self._handed = 0
        self._again: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._listening.setblocking(False)
        # A task that accepts would leak a connection if cancelled at that moment.
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
            # All our descriptors may be in use for a moment.
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
