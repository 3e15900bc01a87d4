"""Learns that containers have ended from the engine's event stream, in one thread for all containers."""

import asyncio
import contextlib
import threading
import time

from engine.runtimes.docker_engine.engine import Api, Document, Engine, EngineFailure, Missing, Stream
from engine.runtimes.process.processes import exit_text

_AGAIN_S = 1.0
_OVERLAP_S = 2
_SHELL_SIGNAL = 128


class Deaths:
    """Watches containers by id. Close it with `close`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._watched: dict[str, asyncio.Future[str]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stream: Stream | None = None
        self._closed = threading.Event()
        self._out_of_memory: set[str] = set()

    def watch(self, container: str) -> None:
        """Watch a container from now on. Call this before the container starts, or while it is known to run."""
        self._loop = asyncio.get_running_loop()
        self._watched.setdefault(container, self._loop.create_future())
        if self._thread is None:
            self._thread = threading.Thread(target=self._listen, name="docker events", daemon=True)
            self._thread.start()

    def forget(self, container: str) -> None:
        ended = self._watched.pop(container, None)
        if ended is not None and not ended.done():
            ended.cancel()

    def has_ended(self, container: str) -> bool:
        ended = self._watched.get(container)
        return ended is None or ended.done()

    async def ended(self, container: str) -> str:
        """Wait until the container has ended; returns how. An unwatched container counts as ended."""
        ended = self._watched.get(container)
        if ended is None:
            return "ended"
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            if ended.cancelled():
                return "ended"
            raise

    def say(self, container: str, how: str) -> None:
        """Record how a container ended. The first record stays, so the caller's reason wins over the engine's."""
        ended = self._watched.get(container)
        if ended is not None and not ended.done():
            ended.set_result(how)

    def close(self) -> None:
        self._closed.set()
        if self._stream is not None:
            with contextlib.suppress(OSError, AttributeError):  # its connection has ended by itself
                self._stream.close()

    def _listen(self) -> None:
        since = int(time.time()) - _OVERLAP_S
        while not self._closed.is_set():
            with contextlib.suppress(EngineFailure):
                self._engine.in_this_thread(lambda api, since=since: self._follow(api, since))
            # The engine was away, and what ended with it sent no event.
            since = int(time.time()) - _OVERLAP_S
            self._closed.wait(_AGAIN_S)

    def _follow(self, api: Api, since: int) -> None:
        filters = {"type": "container", "event": ["die", "oom"]}
        self._stream = api.events(since=since, filters=filters, decode=True)
        for container in list(self._watched):
            self._look(container)
        for event in self._stream:
            self._tell(event)

    def _look(self, container: str) -> None:
        try:
            state = self._engine.in_this_thread(lambda api: api.inspect_container(container))["State"]
        except Missing:
            self._on_loop(container, "is gone")
            return
        if state["Status"] in ("exited", "dead"):
            self._on_loop(container, ending_of(state))

    def _tell(self, event: Document) -> None:
        container = str(event.get("id", ""))
        if event.get("Action") == "oom":
            self._out_of_memory.add(container)
        elif container in self._watched:
            code = int(event.get("Actor", {}).get("Attributes", {}).get("exitCode", 0))
            self._on_loop(container, _ending_text(code, out_of_memory=container in self._out_of_memory))

    def _on_loop(self, container: str, how: str) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.say, container, how)


def ending_of(state: Document) -> str:
    """How a container ended, from the engine's description of its state."""
    return _ending_text(int(state.get("ExitCode") or 0), out_of_memory=bool(state.get("OOMKilled")))


def _ending_text(code: int, *, out_of_memory: bool) -> str:
    if out_of_memory:
        return f"ran out of its memory and was ended by the kernel (exit code {code})"
    return exit_text(code if code <= _SHELL_SIGNAL else _SHELL_SIGNAL - code)
