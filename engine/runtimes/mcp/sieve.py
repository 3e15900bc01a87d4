"""Passes a server's answers to the SDK's session and handles its other messages, so that no server can pile up work."""

import asyncio
import contextlib
import json
import math
from collections.abc import Callable, Generator, Mapping
from typing import TypeGuard, cast

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import JsonValue

from engine.runtimes.mcp.lines import is_larger
from engine.runtimes.mcp.pipes import Streams
from engine.runtimes.mcp.wire import IN_ANSWER_TO
from engine.runtimes.runtime import Asked, Dialogue, Silence, ToolRequest
from toolagent.contracts.call_messages import ANSWER_OF, LogLevel, Question
from toolagent.core.texts import well_formed, well_formed_value

_LONGEST_MESSAGE = 200
_LONGEST_LOGGER = 200
_MOST_OFTEN_S = 0.1
_MOST_SAID = 256 * 1024
"""The largest notification, in bytes of JSON. Larger ones are dropped."""

_MOST_ASKED = 4 * 1_048_576
"""The largest question, which may hold pictures."""

_MOST_QUESTIONS = 16
"""Open questions of one server. More are refused."""

Mask = Callable[[JsonValue], JsonValue]
"""Masks the server's secrets."""

Noted = Callable[[str, Mapping[str, JsonValue]], None]
"""Called with method and parameters of a notification that belongs to no call."""


class Sieve:
    """Passes progress, logs and questions to the dialogue of their call, answers `ping`, and refuses other requests.

    Over HTTP the server's stream tells the call. Over stdio only progress names its call: the rest belongs to the only running call; if
    there are several, logs are dropped and questions declined. No caller sees what may belong to another.
    """

    def __init__(self, mask: Mask, noted: Noted) -> None:
        self._mask, self._noted = mask, noted
        self._calls: dict[str, _Told] = {}
        self._asked: dict[str | int, asyncio.Task[None]] = {}

    @contextlib.contextmanager
    def during(self, request: ToolRequest) -> Generator[None]:
        """Passes on messages of the call while the block runs. Open questions are dropped at its end."""
        told = _Told(request)
        self._calls[request.call_id] = told
        try:
            yield
        finally:
            self._calls.pop(request.call_id, None)
            for task in told.asked:
                task.cancel()

    async def run(self, streams: Streams, onward: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Runs until the server or the session closes."""
        incoming, outgoing = streams
        try:
            with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                async with onward:
                    async for item in incoming:
                        if isinstance(item, Exception):
                            continue
                        match item.message:
                            case JSONRPCRequest() as asked:
                                await self._take_request(asked, outgoing)
                            case JSONRPCNotification(method=method, params=params):
                                self._take_notification(method, params or {})
                                await asyncio.sleep(0)
                            case _:
                                await onward.send(item)
        finally:
            for task in self._asked.values():
                task.cancel()

    async def _take_request(self, asked: JSONRPCRequest, outgoing: MemoryObjectSendStream[SessionMessage]) -> None:
        if asked.method not in ANSWER_OF or len(self._asked) >= _MOST_QUESTIONS or asked.id in self._asked:
            # Waits here if the server does not read our answers: so it cannot send more requests.
            await outgoing.send(SessionMessage(_answer(asked)))
            return
        if not await asyncio.to_thread(_is_json, asked.params, _MOST_ASKED):
            why = f"{asked.method} is refused: its params are no JSON, or larger than {_MOST_ASKED} bytes."
            await outgoing.send(SessionMessage(_refusal(asked, INVALID_PARAMS, why)))
            return
        told = self._call_of(asked.params or {})
        dialogue = told.dialogue if told is not None else Silence()
        task = asyncio.create_task(self._ask(asked, dialogue, outgoing), name=f"question {asked.id}")
        self._asked[asked.id] = task
        task.add_done_callback(lambda _: self._asked.pop(asked.id, None))
        if told is not None:
            told.asked.add(task)
            task.add_done_callback(told.asked.discard)

    async def _ask(self, asked: JSONRPCRequest, dialogue: Dialogue, outgoing: MemoryObjectSendStream[SessionMessage]) -> None:
        params = await asyncio.to_thread(lambda: self._mask(well_formed_value(_without_mark(asked.params or {}))))
        (answer,) = await dialogue.ask([Asked(cast("Question", asked.method), cast("dict[str, JsonValue]", params))])
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await outgoing.send(SessionMessage(_as_answer(asked, answer)))

    def _take_notification(self, method: str, params: Mapping[str, JsonValue]) -> None:
        match method:
            case _ if not _is_json(params, _MOST_SAID):
                pass
            case "notifications/progress":
                token = params.get("progressToken")
                if isinstance(token, str) and (told := self._calls.get(token)) is not None:
                    told.take_progress(params, self._mask)
            case "notifications/message":
                if (told := self._call_of(params)) is not None:
                    told.take_log(params, self._mask)
            case "notifications/cancelled":
                given_up = params.get("requestId")
                if isinstance(given_up, str | int) and (task := self._asked.get(given_up)) is not None:
                    task.cancel()
            case _:
                self._noted(method, cast("dict[str, JsonValue]", self._mask(dict(params))))

    def _call_of(self, params: Mapping[str, JsonValue]) -> "_Told | None":
        marked = params.get("_meta")
        call_id = marked.get(IN_ANSWER_TO) if isinstance(marked, dict) else None
        if isinstance(call_id, str):
            return self._calls.get(call_id)
        return next(iter(self._calls.values())) if len(self._calls) == 1 else None


class _Told:
    """The messages of one call. Users see progress at most every `_MOST_OFTEN_S` seconds."""

    def __init__(self, request: ToolRequest) -> None:
        self.dialogue = request.dialogue
        self.asked: set[asyncio.Task[None]] = set()
        self._progress, self._last = request.progress, float("-inf")

    def take_progress(self, params: Mapping[str, JsonValue], mask: Mask) -> None:
        message, done, total = params.get("message"), params.get("progress"), params.get("total")
        said = str(mask(well_formed(message))) if isinstance(message, str) else None
        if _is_number(done):
            self.dialogue.progress(done, total if _is_number(total) else None, said)
        now = asyncio.get_running_loop().time()
        if now - self._last >= _MOST_OFTEN_S and (text := _text(said, done, total)):
            self._last = now
            self._progress(text)

    def take_log(self, params: Mapping[str, JsonValue], mask: Mask) -> None:
        level, logger = params.get("level"), params.get("logger")
        if level in [*LogLevel]:
            named = well_formed(logger[:_LONGEST_LOGGER]) if isinstance(logger, str) else None
            self.dialogue.log(LogLevel(level), named, mask(well_formed_value(params.get("data"))))


def _text(message: str | None, done: object, total: object) -> str:
    said = " ".join((message or "")[: 4 * _LONGEST_MESSAGE].split())[:_LONGEST_MESSAGE]
    if not _is_number(done):
        return said
    share = f"{done / total:.0%}" if _is_number(total) and 0 <= done <= total and total > 0 else f"{done:g}"
    return f"{said} ({share})" if said else share


def _is_json(params: Mapping[str, JsonValue] | None, most: int) -> bool:
    """Whether other JSON readers accept it: messages may hold `NaN`, `Infinity` and integers of thousands of digits."""
    if is_larger(params, most):
        return False
    try:
        json.dumps(params, allow_nan=False)
    except ValueError:
        return False
    return True


def _is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a number that a float can hold: integers may be larger."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _without_mark(params: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    meta = params.get("_meta")
    if not isinstance(meta, dict) or IN_ANSWER_TO not in meta:
        return dict(params)
    left = {name: value for name, value in cast("dict[str, JsonValue]", meta).items() if name != IN_ANSWER_TO}
    others: dict[str, JsonValue] = {name: value for name, value in params.items() if name != "_meta"}
    return {**others, "_meta": left} if left else others


def _as_answer(asked: JSONRPCRequest, answer: Mapping[str, JsonValue]) -> JSONRPCMessage:
    match answer:
        case {"result": dict() as result}:
            return JSONRPCResponse(jsonrpc="2.0", id=asked.id, result=cast("dict[str, JsonValue]", result))
        case {"error": {"code": int() as code, "message": str() as message}}:
            return JSONRPCError(jsonrpc="2.0", id=asked.id, error=ErrorData(code=code, message=message))
        case _:
            return _answer(asked)


def _answer(asked: JSONRPCRequest) -> JSONRPCMessage:
    if asked.method == "ping":
        return JSONRPCResponse(jsonrpc="2.0", id=asked.id, result={})
    return _refusal(asked, METHOD_NOT_FOUND, f"{asked.method[:100]} is not supported by this client.")


def _refusal(asked: JSONRPCRequest, code: int, message: str) -> JSONRPCMessage:
    return JSONRPCError(jsonrpc="2.0", id=asked.id, error=ErrorData(code=code, message=message))
