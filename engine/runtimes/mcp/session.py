"""One connection to a server, from handshake to end: the SDK's session in a task of its own, usable from all tasks."""

import asyncio
import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias, cast

import anyio
from mcp import ClientSession, MCPError
from mcp.client.context import ClientRequestContext
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION, CallToolResult, ErrorData, ServerCapabilities
from mcp_types.methods import parse_server_result
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import JsonValue, ValidationError

from engine.runtimes.failures import NotSent
from engine.runtimes.mcp.answers import error_of
from engine.runtimes.mcp.codes import BROKEN, FORGOTTEN, LOGIN, NOT_SENT, REFUSED
from engine.runtimes.mcp.pipes import Streams
from engine.runtimes.mcp.questions import answered
from engine.runtimes.mcp.sieve import Noted, Sieve
from engine.runtimes.mcp.wire import OURS, is_modern, stamped
from engine.runtimes.runtime import Dialogue, Silence, ToolRequest
from engine.runtimes.secrecy import masked
from toolagent.contracts.call_messages import Listener, LogLevel

Transport = Callable[[], AbstractAsyncContextManager[Streams]]
"""Opens the connection to a server. The task that enters it also leaves it."""

_GOODBYE_S = 5.0
_ANOTHER_HANDSHAKE = (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION)
_UNREACHED = (NOT_SENT, REFUSED, LOGIN, BROKEN, FORGOTTEN)

_Up: TypeAlias = tuple[ClientSession, JSONRPCDispatcher[TransportContext]]


def _unheard(_: str, __: Mapping[str, JsonValue]) -> None: ...


class Session:
    """Made by `open`. Serves several calls at once."""

    def __init__(self, transport: Transport, secrets: Sequence[str], noted: Noted) -> None:
        self._transport, self._sieve = transport, Sieve(lambda value: masked(value, secrets), noted)
        self._up: asyncio.Future[_Up] = asyncio.get_running_loop().create_future()
        self._leave = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name="mcp session")
        self._task.add_done_callback(self._note_end)
        self._is_forsaken = False
        self._heard: LogLevel | None = None
        self._watched: set[str] = set()
        self._watching: asyncio.Task[None] | None = None
        self.open_calls = 0

    @classmethod
    async def open(
        cls, transport: Transport, secrets: Sequence[str] = (), noted: Noted = _unheard, *, modern_first: bool = False
    ) -> "Session":
        """Connects and agrees on a version. A cancellation leaves nothing open. Raises MCPError, RuntimeError, ValidationError.

        With `modern_first` the server is asked for 2026-07-28 first, else for 2025-11-25. `secrets` are masked in messages of calls;
        `noted`, which must not block, is called with messages that belong to no call.
        """
        session = cls(transport, secrets, noted)
        try:
            await session._shake_hands(modern_first=modern_first)
        except BaseException:
            await session.close()
            raise
        return session

    @property
    def why(self) -> str:
        """Why it ended."""
        error = self._failure
        return f"{type(error).__name__}: {error}" if error is not None else "it ended"

    @property
    def _failure(self) -> BaseException | None:
        error = self._task.exception() if self._task.done() and not self._task.cancelled() else None
        while isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
        return error

    @property
    def is_open(self) -> bool:
        return not (self._task.done() or self._leave.is_set() or self._is_forsaken)

    @property
    def capabilities(self) -> ServerCapabilities:
        """The capabilities that the server declares."""
        return (self._up.result()[0].server_capabilities if self._up.done() else None) or ServerCapabilities()

    @property
    def is_modern(self) -> bool:
        """Whether the server speaks 2026-07-28."""
        return self._up.done() and is_modern(self._version)

    async def ended(self) -> None:
        """Waits until either side has ended the connection."""
        await asyncio.wait([self._task])

    async def close(self) -> None:
        """Ends the connection; unanswered calls fail. Idempotent."""
        self._leave.set()
        if self._watching is not None:
            self._watching.cancel()
        if not self._up.done():
            self._task.cancel()
        await asyncio.wait([self._task], timeout=_GOODBYE_S)
        self._task.cancel()
        await asyncio.wait([self._task])

    def forsake(self) -> None:
        """Takes no more calls. Running calls may still be answered; it ends with the last, because later calls wait for its end."""
        self._is_forsaken = True
        self._leave_if_done()

    async def call(self, name: str, request: ToolRequest, meta: Mapping[str, JsonValue], headers: Mapping[str, str]) -> CallToolResult:
        """Sends the call, and again with the answers to each round of questions. A cancellation is sent to the server.

        Raises MCPError, ValidationError (not a valid answer).
        """
        params = {"name": name, "arguments": request.params, "_meta": {**meta, "progressToken": request.call_id}}
        with self._counted(), self._sieve.during(request):
            await self._hear(request.dialogue.listens.log_level)
            raw = await self.request("tools/call", params, request.dialogue, headers)
        result = parse_server_result("tools/call", self._version, raw)
        return cast("CallToolResult", result)

    async def request(
        self, method: str, params: Mapping[str, JsonValue], dialogue: Dialogue | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, JsonValue]:
        """The server's unchanged result; its questions go to the dialogue. Raises MCPError."""
        asked = dialogue or Silence()
        return await answered(lambda more: self._send(method, {**params, **more}, asked.listens, headers or {}), asked)

    async def list_page(self, cursor: str | None) -> dict[str, JsonValue]:
        """One unchanged page of `tools/list`. Raises MCPError."""
        return await self.request("tools/list", {"cursor": cursor} if cursor is not None else {})

    async def answers(self, within_s: float) -> bool:
        """Whether the server answers a `ping` in time."""
        try:
            async with asyncio.timeout(within_s):
                await self.request("ping", {})
        except MCPError as error:
            return error.code == METHOD_NOT_FOUND  # it answers
        except (TimeoutError, ValueError):
            return False
        return True

    async def once(self, method: str, params: Mapping[str, JsonValue], listens: Listener) -> dict[str, JsonValue]:
        """The server's unchanged first result, which may be a question. Raises MCPError."""
        with self._counted():
            return await self._send(method, params, listens, {})

    async def watch(self, uri: str, *, is_watched: bool) -> None:
        """Subscribes to changes of a resource, or unsubscribes. Raises MCPError."""
        if not self.is_modern:
            await self.request("resources/subscribe" if is_watched else "resources/unsubscribe", {"uri": uri})
            return
        (self._watched.add if is_watched else self._watched.discard)(uri)
        if self._watching is not None:
            self._watching.cancel()
        self._watching = asyncio.create_task(self._watch([*self._watched]), name="mcp resources") if self._watched else None

    async def _watch(self, uris: Sequence[str]) -> None:
        """Listens by the request of 2026-07-28 that stays open while the server sends changes."""
        wanted: list[JsonValue] = [*uris]
        with contextlib.suppress(MCPError):
            await self._send("subscriptions/listen", {"notifications": {"resourceSubscriptions": wanted}}, Listener(), {})

    async def _send(
        self, method: str, params: Mapping[str, JsonValue], listens: Listener, headers: Mapping[str, str]
    ) -> dict[str, JsonValue]:
        if not self.is_open:
            raise _closed()
        _, dispatcher = await asyncio.shield(self._up)
        whole, own = stamped(method, params, self._version, listens, headers)
        return await dispatcher.send_raw_request(method, whole, {"headers": own})

    async def _hear(self, least: LogLevel | None) -> None:
        """Sets the log level of a server of 2025 to the lowest that any call has requested. Servers of 2026 get it with each call."""
        if least is None or self.is_modern or self.capabilities.logging is None:
            return
        if self._heard is None or not least.reaches(self._heard):
            self._heard = least
            with contextlib.suppress(MCPError):
                await self.request("logging/setLevel", {"level": least.value})

    @property
    def _version(self) -> str:
        return self._up.result()[0].protocol_version or LATEST_HANDSHAKE_VERSION

    async def _shake_hands(self, *, modern_first: bool) -> None:
        await asyncio.wait([self._task, self._up], return_when=asyncio.FIRST_COMPLETED)
        if not self._up.done():
            if isinstance(self._failure, NotSent):
                raise MCPError.from_error_data(error_of(self._failure))
            raise _closed(f"No connection: {self.why}")
        session, _ = self._up.result()
        if modern_first and await _is_discovered(session):
            return
        try:
            await session.initialize()
        except MCPError as error:
            if error.code not in _ANOTHER_HANDSHAKE:
                raise
            # A server of 2026 may know only this handshake.
            await session.discover()

    async def _run(self) -> None:
        async with self._transport() as streams:
            onward, sifted = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            dispatcher = JSONRPCDispatcher[TransportContext](sifted, streams[1])
            # The sieve answers these requests. Passing callbacks declares to the server what our callers may answer.
            asking = ClientSession(
                dispatcher=dispatcher,
                client_info=OURS,
                sampling_callback=_sieved,
                elicitation_callback=_sieved,
                list_roots_callback=_sieved,
            )
            async with onward, sifted, asking as session:
                self._up.set_result((session, dispatcher))
                sieving = asyncio.create_task(self._sieve.run(streams, onward))
                leaving = asyncio.create_task(self._leave.wait())
                try:
                    await asyncio.wait([sieving, leaving], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    self._leave.set()
                    for task in (sieving, leaving):
                        task.cancel()
                    await asyncio.wait([sieving, leaving])

    def _note_end(self, task: asyncio.Task[None]) -> None:
        """Reads the failure, which callers see elsewhere: otherwise asyncio would log it."""
        if not task.cancelled():
            task.exception()

    @contextlib.contextmanager
    def _counted(self) -> Generator[None]:
        self.open_calls += 1
        try:
            yield
        finally:
            self.open_calls -= 1
            self._leave_if_done()

    def _leave_if_done(self) -> None:
        if self._is_forsaken and not self.open_calls:
            self._leave.set()


async def _is_discovered(session: ClientSession) -> bool:
    """Whether the server speaks 2026-07-28. Raises MCPError if it was not reached."""
    try:
        await session.discover()
    except MCPError as error:
        if error.code in _UNREACHED:
            raise
        return False
    except (RuntimeError, ValidationError):
        return False
    return True


async def _sieved(context: ClientRequestContext, params: object = None) -> ErrorData:  # noqa: ARG001 - the SDK's form
    return ErrorData(code=METHOD_NOT_FOUND, message="It is answered elsewhere.")


def _closed(why: str = "The connection to the server has ended.") -> MCPError:
    return MCPError(code=NOT_SENT, message=why)
