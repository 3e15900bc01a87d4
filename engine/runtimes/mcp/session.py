"""One connection to a server, from its handshake to its end: the SDK's session in a task of its own, used from any."""

import asyncio
import contextlib
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias, TypeVar, cast

import anyio
from mcp import ClientSession, MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    Implementation,
    ListToolsRequest,
    ListToolsResult,
    PaginatedRequestParams,
    PingRequest,
    Request,
)
from pydantic import BaseModel

from engine.runtimes.mcp.codes import NOT_SENT
from engine.runtimes.mcp.pipes import Streams
from engine.runtimes.mcp.sieve import Sieve
from engine.runtimes.runtime import Progress

Transport = Callable[[], AbstractAsyncContextManager[Streams]]
"""Opens the way to a server. It is left in the task that entered it."""

_GOODBYE_S = 5.0
_OURS = Implementation(name="tool-agent", version="1")
_ANOTHER_HANDSHAKE = (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION)

_Up: TypeAlias = tuple[ClientSession, JSONRPCDispatcher[TransportContext]]

R = TypeVar("R", bound=BaseModel)


class Session:
    """Made by `open`. Several calls at once go over it."""

    def __init__(self, transport: Transport) -> None:
        self._transport, self._sieve = transport, Sieve()
        self._up: asyncio.Future[_Up] = asyncio.get_running_loop().create_future()
        self._leave = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name="mcp session")
        self._task.add_done_callback(self._note_end)
        self._is_forsaken = False
        self.open_calls = 0

    @classmethod
    async def open(cls, transport: Transport) -> "Session":
        """Connect and agree on a version. A cancellation leaves nothing open. Raises MCPError, RuntimeError, ValidationError."""
        session = cls(transport)
        try:
            await session._shake_hands()
        except BaseException:
            await session.close()
            raise
        return session

    @property
    def why(self) -> str:
        """How it ended, where it broke."""
        error = self._task.exception() if self._task.done() and not self._task.cancelled() else None
        while isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
        return f"{type(error).__name__}: {error}" if error is not None else "it ended"

    @property
    def is_open(self) -> bool:
        return not (self._task.done() or self._leave.is_set() or self._is_forsaken)

    async def ended(self) -> None:
        """Wait until it is over, whichever side ended it."""
        await asyncio.wait([self._task])

    async def close(self) -> None:
        """Unanswered calls fail. May be repeated."""
        self._leave.set()
        if not self._up.done():
            self._task.cancel()
        await asyncio.wait([self._task], timeout=_GOODBYE_S)
        self._task.cancel()
        await asyncio.wait([self._task])

    def forsake(self) -> None:
        """Take no more calls; those that are on it may still be answered."""
        self._is_forsaken = True

    async def call(self, name: str, arguments: dict[str, Any], call_id: str, meta: dict[str, Any], progress: Progress) -> CallToolResult:
        """Send it once. Cancelling it tells the server. Raises MCPError, ValidationError (the answer is none)."""
        told: Any = {**meta, "progressToken": call_id}
        params = CallToolRequestParams(name=name, arguments=arguments, _meta=told)
        with self._counted(), self._sieve.progress_of(call_id, progress):
            # Not `call_tool`, which would list all tools to check the answer: that is done where the manifest is.
            return await self._ask(CallToolRequest(params=params), CallToolResult)

    async def list_page(self, cursor: str | None) -> dict[str, Any]:
        """One page of `tools/list`, as the server wrote it. Raises MCPError, ValidationError."""
        if not self.is_open:
            raise _closed()
        session, dispatcher = await asyncio.shield(self._up)
        if session.discover_result is None:
            # The SDK would refuse a page of a hundred tools for one that is none.
            return await dispatcher.send_raw_request("tools/list", {"cursor": cursor} if cursor is not None else None)
        params = PaginatedRequestParams(cursor=cursor) if cursor is not None else None
        return (await session.send_request(ListToolsRequest(params=params), ListToolsResult)).model_dump(by_alias=True, mode="json")

    async def answers(self, within_s: float) -> bool:
        """Whether it answers a `ping` in time."""
        try:
            async with asyncio.timeout(within_s):
                await self._ask(PingRequest(), EmptyResult)
        except MCPError as error:
            return error.code == METHOD_NOT_FOUND  # it answers
        except (TimeoutError, ValueError):
            return False
        return True

    async def _ask(self, request: Request[Any, Any], result: type[R]) -> R:
        if not self.is_open:
            raise _closed()
        session, _ = await asyncio.shield(self._up)
        return await session.send_request(request, result)

    async def _shake_hands(self) -> None:
        await asyncio.wait([self._task, self._up], return_when=asyncio.FIRST_COMPLETED)
        if not self._up.done():
            raise _closed(f"No connection: {self.why}")
        session, _ = self._up.result()
        try:
            await session.initialize()
        except MCPError as error:
            if error.code not in _ANOTHER_HANDSHAKE:
                raise
            # Servers of 2026 may know no other.
            await session.discover()

    async def _run(self) -> None:
        async with self._transport() as streams:
            onward, sifted = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            dispatcher = JSONRPCDispatcher[TransportContext](sifted, streams[1])
            async with onward, sifted, ClientSession(dispatcher=dispatcher, client_info=_OURS) as session:
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
        """Its callers see how it failed; asyncio need not log it."""
        if not task.cancelled():
            task.exception()

    @contextlib.contextmanager
    def _counted(self) -> Generator[None]:
        self.open_calls += 1
        try:
            yield
        finally:
            self.open_calls -= 1


def _closed(why: str = "The connection to the server has ended.") -> MCPError:
    return MCPError(code=NOT_SENT, message=why)
