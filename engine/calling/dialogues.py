"""Messages and questions of a tool to the caller of a call.

They are stored, and the front door of the caller reads them.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import TypeAlias

from pydantic import JsonValue

from engine.runtimes.runtime import Asked, Silence, declined
from engine.store.call_messages import CallMessages
from toolagent.contracts.call_messages import Listener, LogLevel, MessageKind
from toolagent.core.failures import StoreUnavailableError

_MOST_WAITING = 256
"""Messages that wait for the database; surplus ones are left out."""

_MOST_MESSAGES = 2_000
_MOST_BYTES = 256 * 1024
_GOODBYE_S = 2.0

Sampling: TypeAlias = Callable[[str, int, dict[str, JsonValue]], Awaitable[dict[str, JsonValue]]]
"""Answers a question for a model by our own model. Takes the id of the call, the number of the question in it, and the params of
`sampling/createMessage`."""

_Message: TypeAlias = tuple[MessageKind, dict[str, JsonValue]]


class Dialogues:
    """`sampling` answers for callers without a model; None: nothing does."""

    def __init__(self, messages: CallMessages, sampling: Sampling | None = None) -> None:
        self._messages, self._sampling = messages, sampling

    def of(self, call_id: str, listens: Listener | None, timeout_s: float) -> AbstractAsyncContextManager["CallDialogue | Silence"]:
        """The dialogue of one call, which may take `timeout_s`. All messages are in the database when the block has ended."""
        if listens is None and self._sampling is None:
            return nullcontext(Silence())
        return self._heard(CallDialogue(self._messages, call_id, listens or Listener(), timeout_s, self._sampling))

    @asynccontextmanager
    async def _heard(self, dialogue: "CallDialogue") -> AsyncGenerator["CallDialogue"]:
        try:
            yield dialogue
        finally:
            await dialogue.close()


class CallDialogue:
    """The dialogue of one call. Call `close` at the end."""

    def __init__(self, messages: CallMessages, call_id: str, listens: Listener, timeout_s: float, sampling: Sampling | None) -> None:
        self._messages, self._call_id, self._listens, self._timeout_s, self._sampling = messages, call_id, listens, timeout_s, sampling
        self.shown: JsonValue = None
        self._unsaid: list[_Message] = []
        self._said, self._sampled = 0, 0
        self._saying: asyncio.Task[None] | None = None

    @property
    def listens(self) -> Listener:
        return self._listens

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        if self._listens.progress:
            self._say("progress", {"progress": done, "total": total, "message": message})

    def log(self, level: LogLevel, logger: str | None, data: JsonValue) -> None:
        if self._listens.log_level is not None and level.reaches(self._listens.log_level):
            self._say("log", {"level": level.value, "logger": logger, "data": data})

    def show(self, content: JsonValue) -> None:
        self.shown = content

    async def ask(self, asked: Sequence[Asked]) -> list[dict[str, JsonValue]]:
        """The answers. Questions for the caller are sent together, and answered in any order."""
        told = [one for one in asked if self._listens.can_answer(one.question, one.params) and self._takes(_payload(one))]
        await self._all_said()
        try:
            last = await self._messages.say_all(self._call_id, [("question", _payload(one)) for one in told]) if told else 0
        except StoreUnavailableError:
            told, last = [], 0
        positions = {id(one): last - len(told) + number for number, one in enumerate(told, 1)}
        return await asyncio.gather(*(self._answer(one, positions.get(id(one))) for one in asked))

    async def _answer(self, asked: Asked, position: int | None) -> dict[str, JsonValue]:
        if position is not None:
            with contextlib.suppress(StoreUnavailableError, TimeoutError):
                return await self._messages.wait_answer(self._call_id, position, self._timeout_s)
        elif asked.question == "sampling/createMessage" and self._sampling is not None:
            self._sampled += 1
            return await self._sampling(self._call_id, self._sampled, asked.params)
        return declined(asked.question)

    async def close(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GOODBYE_S):
                await self._all_said()
        if self._saying is not None:
            self._saying.cancel()

    def _say(self, kind: MessageKind, payload: dict[str, JsonValue]) -> None:
        if len(self._unsaid) >= _MOST_WAITING or not self._takes(payload):
            return
        self._unsaid.append((kind, payload))
        if self._saying is None or self._saying.done():
            self._saying = asyncio.create_task(self._say_all(), name=f"messages of {self._call_id}")

    def _takes(self, payload: dict[str, JsonValue]) -> bool:
        """Whether the limits permit another message of this size."""
        if self._said >= _MOST_MESSAGES or len(json.dumps(payload)) > _MOST_BYTES:
            return False
        self._said += 1
        return True

    async def _say_all(self) -> None:
        while self._unsaid:
            batch, self._unsaid = self._unsaid, []
            # Late messages are useless, so the call does not wait for the database.
            with contextlib.suppress(StoreUnavailableError):
                await self._messages.say_all(self._call_id, batch)

    async def _all_said(self) -> None:
        if self._saying is not None:
            await asyncio.wait([self._saying])


def _payload(asked: Asked) -> dict[str, JsonValue]:
    named: dict[str, JsonValue] = {"key": asked.key} if asked.key is not None else {}
    return {"method": asked.question, "params": asked.params, **named}
