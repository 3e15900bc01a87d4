"""Answers the messages of windows: each window in order, several windows at once."""

import asyncio
from typing import Protocol

import structlog

from engine.im.outbox import Outbox
from engine.im.pauses import Pauses
from engine.im.protocol import key_of, reply_to
from engine.im.windows import ChatWindows
from toolagent.contracts.im import ImMessage

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Unanswerable(Exception):
    """The message cannot be answered. The text tells its sender why."""


class Answering(Protocol):
    async def answer(self, chat_id: str, message_id: str, text: str) -> str:
        """The answer of the chat. Idempotent for the same message id.

        Raises Unanswerable. After any other error it is called again later.
        """
        ...


class Notifier:
    """A queue of windows with messages to answer. A window is in it once at most."""

    def __init__(self) -> None:
        self._windows: dict[str, None] = {}
        self._more = asyncio.Event()

    def notify(self, chat_id: str) -> None:
        self._windows[chat_id] = None
        self._more.set()

    async def next(self) -> str:
        """Waits for a window. Returns the chat id of the one that has waited longest."""
        await self._more.wait()
        chat_id = next(iter(self._windows))
        del self._windows[chat_id]
        if not self._windows:
            self._more.clear()
        return chat_id


class Answers:
    """Answers `at_once` messages at the same time. After a failure a window pauses, at most `longest_pause_s` seconds."""

    def __init__(
        self, windows: ChatWindows, notifier: Notifier, outbox: Outbox, answering: Answering, *, at_once: int, longest_pause_s: float
    ) -> None:
        self._windows, self._notifier, self._outbox, self._answering = windows, notifier, outbox, answering
        self._slots = asyncio.Semaphore(at_once)
        self._longest_pause_s = longest_pause_s
        self._busy: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Runs until it is cancelled. Unanswered messages wait for the next start."""
        try:
            while True:
                chat_id = await self._notifier.next()
                if chat_id not in self._busy:
                    self._busy[chat_id] = asyncio.create_task(self._serve(chat_id), name="im window")
        finally:
            for task in tuple(self._busy.values()):
                task.cancel()
            await asyncio.gather(*self._busy.values(), return_exceptions=True)

    async def _serve(self, chat_id: str) -> None:
        """Answers until nothing waits in the window."""
        pauses = Pauses(self._longest_pause_s)
        try:
            while (asked := self._windows.next_waiting(chat_id)) is not None:
                try:
                    async with self._slots:
                        told = reply_to(asked, chat_id, await self._answer(chat_id, asked))
                    await self._windows.answer(chat_id, asked, told)
                except Exception as error:  # noqa: BLE001 - the message waits here and nothing is lost
                    pause_s = pauses.next()
                    _log.warning("im_answer_failed", chat_id=chat_id, reason=repr(error), next_attempt_in_s=round(pause_s, 1))
                    await asyncio.sleep(pause_s)
                else:
                    pauses.reset()
                    self._outbox.add(told)
        finally:
            # Nothing is awaited between the last look and this, so a later message finds the window idle.
            del self._busy[chat_id]

    async def _answer(self, chat_id: str, asked: ImMessage) -> str:
        try:
            return await self._answering.answer(chat_id, key_of(asked), asked.content)
        except Unanswerable as error:
            return str(error)
