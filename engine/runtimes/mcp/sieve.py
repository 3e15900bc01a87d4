"""Passes a server's answers to the SDK's session and handles all other messages, so that no server can pile up work."""

import asyncio
import contextlib
from collections.abc import Generator, Mapping
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import METHOD_NOT_FOUND, ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from engine.runtimes.mcp.pipes import Streams
from engine.runtimes.runtime import Progress
from toolagent.core.texts import well_formed

_LONGEST_MESSAGE = 200
_MOST_OFTEN_S = 0.1


class Sieve:
    """Answers what the server asks: `ping`, and of all else that it is not supported. Hands on the progress of calls."""

    def __init__(self) -> None:
        self._calls: dict[str, _Told] = {}

    @contextlib.contextmanager
    def progress_of(self, token: str, progress: Progress) -> Generator[None]:
        """While the block runs."""
        self._calls[token] = _Told(progress)
        try:
            yield
        finally:
            self._calls.pop(token, None)

    async def run(self, streams: Streams, onward: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Until the server closes, or the session does."""
        incoming, outgoing = streams
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with onward:
                async for item in incoming:
                    if isinstance(item, Exception):
                        continue
                    match item.message:
                        case JSONRPCRequest() as asked:
                            # A server that does not read our answers cannot send more requests: we wait here.
                            await outgoing.send(SessionMessage(_answer(asked)))
                        case JSONRPCNotification(method="notifications/progress", params=params):
                            self._tell(params or {})
                        case JSONRPCNotification():
                            await asyncio.sleep(0)
                        case _:
                            await onward.send(item)

    def _tell(self, params: Mapping[str, Any]) -> None:
        token = params.get("progressToken")
        if isinstance(token, str) and (told := self._calls.get(token)) is not None:
            told.take(params)


class _Told:
    """The progress of one call; of what comes too often, the first is told."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._last = progress, float("-inf")

    def take(self, params: Mapping[str, Any]) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._last >= _MOST_OFTEN_S and (text := _text(params)):
            self._last = now
            self._progress(text)


def _text(params: Mapping[str, Any]) -> str:
    message, done, total = params.get("message"), params.get("progress"), params.get("total")
    said = " ".join(well_formed(message[: 4 * _LONGEST_MESSAGE]).split())[:_LONGEST_MESSAGE] if isinstance(message, str) else ""
    if not isinstance(done, int | float) or isinstance(done, bool):
        return said
    share = f"{done / total:.0%}" if isinstance(total, int | float) and 0 <= done <= total and total > 0 else f"{done:g}"
    return f"{said} ({share})" if said else share


def _answer(asked: JSONRPCRequest) -> JSONRPCMessage:
    if asked.method == "ping":
        return JSONRPCResponse(jsonrpc="2.0", id=asked.id, result={})
    error = ErrorData(code=METHOD_NOT_FOUND, message=f"{asked.method[:100]} is not supported by this client.")
    return JSONRPCError(jsonrpc="2.0", id=asked.id, error=error)
