"""Runs an HTTP server on this machine in its own thread, for the time of a `with` block."""

import asyncio
import logging
import os
import socket
import threading
from types import TracebackType
from typing import Self

import uvicorn
from starlette.applications import Starlette

__all__ = ["LOOPBACK", "ConnectionCut", "NotServing", "ServerThread"]

LOOPBACK = "127.0.0.1"
_BOUND_S = 30
_GRACE_S = 1


class ConnectionCut(Exception):
    """Raised within an answer that has begun. It closes the connection at once."""


class NotServing(RuntimeError):
    """The server does not come up, or is not up."""


class ServerThread:
    """Serves an application within `with` or `async with`. Clients may be in any thread and may block.

    `port` 0 takes a free one. Raises NotServing when the port is taken.
    """

    def __init__(self, app: Starlette, port: int = 0) -> None:
        self._app = app
        self._port = port
        self._url: str | None = None
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self._quiet = _Quiet()

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`, while it is up."""
        if self._url is None:
            raise NotServing("The server is not up: enter it by `with` or `async with` first.")
        return self._url

    def start(self) -> None:
        # asyncio sends small pieces at once only if the protocol is named. Otherwise, every third answer takes 40 ms.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((LOOPBACK, self._port))
            listener.listen()
        except OSError as error:
            listener.close()
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise NotServing(f"Port {self._port} cannot be listened on: {reason}. Choose another, or 0 for a free one.") from error
        logging.getLogger("uvicorn.error").addFilter(self._quiet)
        config = uvicorn.Config(
            self._app, loop="asyncio", log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=_GRACE_S
        )
        self._server = _Server(config)
        # A daemon, so that it does not keep an ending process alive.
        self._thread = threading.Thread(target=self._server.run, args=([listener],), name="test server", daemon=True)
        self._thread.start()
        if not self._server.answers.wait(_BOUND_S):
            self.stop()
            raise NotServing(f"The server did not come up within {_BOUND_S} s.")
        self._url = f"http://{LOOPBACK}:{listener.getsockname()[1]}"

    def stop(self) -> None:
        """Cuts off running answers after a second."""
        if self._server is not None and self._thread is not None:
            self._server.end()
            self._thread.join(_BOUND_S)
            logging.getLogger("uvicorn.error").removeFilter(self._quiet)
        self._server = self._thread = self._url = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.__enter__)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)


class _Server(uvicorn.Server):
    """Tells when it answers, and ends at once, not at the next tick."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.answers = threading.Event()
        self._ended = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._loop = asyncio.get_running_loop()
        self.answers.set()

    async def main_loop(self) -> None:
        # The first tick sets the headers of all answers.
        await self.on_tick(0)
        await self._ended.wait()

    def end(self) -> None:
        """From another thread."""
        self.should_exit = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ended.set)


class _Quiet(logging.Filter):
    """Drops the tracebacks of answers that were cut on purpose."""

    def filter(self, record: logging.LogRecord) -> bool:
        meant = (ConnectionCut, asyncio.CancelledError)
        return not (record.exc_info and isinstance(record.exc_info[1], meant)) and "graceful shutdown" not in str(record.msg)
