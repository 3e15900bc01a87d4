"""Forwards notifications and questions of a running call to its client."""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pydantic import JsonValue

from api.json_object import JsonObject
from api.mcp.calls.underway import Underway
from api.mcp.visit import Ask
from api.ports import CallMessages
from toolagent.contracts.call_messages import CallMessage
from toolagent.contracts.calls import ToolResult

Tell: TypeAlias = Callable[[str, JsonObject, int], Awaitable[None]]
"""Sends the client a notification: its method, its params, and the position of its message."""

_LOOK_S, _LONGEST_LOOK_S = 0.02, 0.25


@dataclass(frozen=True, slots=True)
class Asked:
    """Open questions of a call, by the keys of their answers."""

    questions: Mapping[str, CallMessage]


@dataclass(slots=True)
class Followed:
    """A call, and how its client is told. `position` is that of the last message told. `given` are answers that were sent ahead.

    `is_continued`: open questions up to `position` are asked again.
    """

    call_id: str
    tell: Tell
    ask: Ask
    token: str | int | None = None
    hears: bool = False
    position: int = 0
    given: JsonObject = field(default_factory=JsonObject)
    at_most_s: float | None = None
    """The time after which the call goes on without its client; None: never."""
    is_continued: bool = False


class Following:
    def __init__(self, underway: Underway, messages: CallMessages) -> None:
        self._underway, self._messages = underway, messages

    async def follow(self, one: Followed) -> ToolResult | Asked | None:
        """The result of the call, its questions if they must be the answer, or None after `at_most_s`.

        Raises LostCallError, StoreUnavailableError.
        """
        with self._underway.end(one.call_id) as end:
            return await self._until(end, one)

    async def _until(self, end: "asyncio.Task[ToolResult]", one: Followed) -> ToolResult | Asked | None:
        loop = asyncio.get_running_loop()
        until = loop.time() + one.at_most_s if one.at_most_s is not None else math.inf
        pause_s = _LOOK_S
        while True:
            waited = min(max(until - loop.time(), 0.0), pause_s if one.hears else math.inf)
            done, _ = await asyncio.wait((end,), timeout=waited if waited < math.inf else None)
            told = await self._told(one) if one.hears else 0
            if done:
                return end.result()
            if isinstance(told, Asked):
                return told
            if loop.time() >= until:
                return None
            pause_s = _LOOK_S if told else min(1.5 * pause_s, _LONGEST_LOOK_S)

    async def open_questions(self, call_id: str) -> dict[str, CallMessage]:
        """Questions without an answer, by their keys."""
        return {key_of(one): one for one in await self._messages.open_questions(call_id)}

    async def answer(self, call_id: str, answers: Mapping[str, JsonValue]) -> None:
        """Answer open questions by their keys. Other answers are ignored."""
        for key, question in (await self.open_questions(call_id)).items():
            if key in answers:
                await self._messages.answer(call_id, question.position, {"result": answers[key]})

    async def _told(self, one: Followed) -> Asked | int:
        """Tell new messages. Returns the questions that must be the answer, otherwise the number of messages."""
        asked: dict[str, CallMessage] = {}
        messages: Sequence[CallMessage] = await self._messages.after(one.call_id, one.position)
        if one.is_continued:
            one.is_continued = False
            asked_before = await self._messages.open_questions(one.call_id)
            messages = [*(question for question in asked_before if question.position <= one.position), *messages]
        for message in messages:
            if message.kind == "question":
                if message.answer is None and not await self._answered_ahead(one, message) and not await one.ask(message):
                    asked[key_of(message)] = message
            elif (told := _notification(message, one.token)) is not None:
                await one.tell(*told, message.position)
            one.position = max(one.position, message.position)
        return Asked(asked) if asked else len(messages)

    async def _answered_ahead(self, one: Followed, message: CallMessage) -> bool:
        key = key_of(message)
        if key not in one.given:
            return False
        await self._messages.answer(one.call_id, message.position, {"result": one.given.pop(key)})
        return True


def key_of(question: CallMessage) -> str:
    """The key that the asking server chose, if there is one."""
    key = question.payload.get("key")
    return key if isinstance(key, str) and key else f"question-{question.position}"


def request_of(question: CallMessage) -> JsonObject:
    """A question in MCP's form."""
    return {"method": question.payload.get("method"), "params": question.payload.get("params") or {}}


def _notification(message: CallMessage, token: str | int | None) -> tuple[str, JsonObject] | None:
    """The notification of a message. None for a question, and for values that JSON cannot express, such as NaN."""
    said: JsonObject = {key: value for key, value in message.payload.items() if value is not None}
    match message.kind:
        case "progress":
            is_heard = token is not None and all(_is_finite(said[key]) for key in ("progress", "total") if key in said)
            return ("notifications/progress", {"progressToken": token, **said}) if is_heard else None
        case "log":
            return ("notifications/message", said) if _is_json(said) else None
        case "question":
            return None


def _is_finite(value: JsonValue) -> bool:
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:
        return False


def _is_json(value: JsonValue) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True
