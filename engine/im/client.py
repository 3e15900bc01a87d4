"""The IM client: carries messages between the connection and the windows."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import structlog

from engine.im.answering import Answering, Answers, Notifier
from engine.im.connection import Connection, Line
from engine.im.notices import NoticeDelivery, Notices
from engine.im.outbox import Outbox
from engine.im.protocol import NotAMessage, acknowledgement, read_message, refusal, refusal_of, settles
from engine.im.windows import ChatWindows, WindowFull
from toolagent.contracts.im import ImMessage, ImType
from toolagent.contracts.system import ImState, ImStatus

_SHOWN = 200
"""Characters of an invalid frame that are logged."""

_BETWEEN_COMPLAINTS_S = 1.0

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most messages that are answered at once, and the most open windows."""

    at_once: int = 16
    windows: int = 1_000


class ImClient:
    """Keeps its files in `folder`, which no other process uses. Without `notices`, chats only answer."""

    def __init__(
        self, line: Line, folder: Path, answering: Answering, notices: Notices | None = None, bounds: Bounds | None = None
    ) -> None:
        bounds = bounds or Bounds()
        self._contact_id = line.contact_id
        self._outbox, self._notifier, self._told = Outbox(), Notifier(), Complaints()
        self.windows = ChatWindows(folder / "windows", bounds.windows, self._outbox.remove)
        self._connection = Connection(line, self._outbox, self._receive)
        self._answers = Answers(
            self.windows, self._notifier, self._outbox, answering, at_once=bounds.at_once, longest_pause_s=line.longest_pause_s
        )
        position, pause_s = folder / "notices_position", line.longest_pause_s
        self._delivery = NoticeDelivery(self.windows, self._outbox, notices, position, longest_pause_s=pause_s) if notices else None

    @property
    def connected_since(self) -> datetime | None:
        """None while there is no connection."""
        return self._connection.since

    def status(self) -> ImStatus:
        return ImStatus(
            state=ImState.CONNECTED if self.connected_since else ImState.DISCONNECTED,
            contact_id=self._contact_id,
            connected_since=self.connected_since,
            waiting=sum(map(self.windows.waiting, self.windows.chat_ids)),
        )

    def chat_ids(self) -> tuple[str, ...]:
        """Chats of open windows."""
        return self.windows.chat_ids

    async def run(self) -> None:
        """Runs until it is cancelled. Raises OSError if the folder is unusable."""
        await self.windows.load()
        for message in self.windows.unacknowledged():
            self._outbox.add(message)
        self._notify_all_waiting()
        async with asyncio.TaskGroup() as parts:
            parts.create_task(self._connection.run(), name="im connection")
            parts.create_task(self._answers.run(), name="im answers")
            if self._delivery:
                parts.create_task(self._delivery.run(), name="im notices")

    async def say(self, chat_id: str, key: str, content: str) -> bool:
        """Sends to the last sender in that window, once for each key. False: no such window, or sent before. Raises WindowFull."""
        if (told := await self.windows.say(chat_id, key, content)) is None:
            return False
        self._outbox.add(told)
        return True

    async def _receive(self, frame: str | bytes) -> ImMessage | None:
        try:
            message = read_message(frame)
        except NotAMessage as error:
            self._told.warn("im_frame_skipped", reason=str(error), begins=repr(frame[:_SHOWN]))
            return None
        match message.type:
            case ImType.CHAT:
                return await self._take(message)
            case ImType.ACK | ImType.ERROR:
                await self._settle(message)
                return None
            case _:
                return self._pass_over(message)

    async def _take(self, message: ImMessage) -> ImMessage:
        reason = refusal_of(message, self._contact_id)
        try:
            new = await self.windows.take(message) if reason is None else ()
        except WindowFull as error:
            new, reason = (), str(error)
        except OSError:
            # One of several windows may have it already. When it is sent again, it is not new there.
            self._notify_all_waiting()
            raise
        if reason is not None:
            self._told.warn("im_message_refused", id=message.id, sender=message.sender, reason=reason)
            return refusal(message, reason)
        for chat_id in new:
            self._notifier.notify(chat_id)
        if new:
            self._connection.made_progress()
        return acknowledgement(message)

    def _notify_all_waiting(self) -> None:
        for chat_id in self.windows.chat_ids:
            if self.windows.waiting(chat_id):
                self._notifier.notify(chat_id)

    async def _settle(self, told: ImMessage) -> None:
        sent = self._outbox.get(told.id)
        if told.type == ImType.ERROR:
            self._told.warn("im_message_not_taken", id=told.id, receiver=told.sender, reason=told.content[:_SHOWN])
        if sent is None or sent.sender_chat_id is None or not settles(told, sent):
            return
        await self.windows.settle(sent.sender_chat_id, sent.id)
        self._outbox.remove(sent.id)
        self._connection.made_progress()

    def _pass_over(self, message: ImMessage) -> ImMessage:
        """Acknowledges a message that needs no answer, or has an unknown type, so that it is not sent again."""
        if message.type not in {ImType.REPLY, ImType.NOTICE}:
            self._told.warn("im_type_unknown", type=message.type, id=message.id, sender=message.sender, known=[*ImType])
        return acknowledgement(message)


class Complaints:
    """Logs complaints about messages of others: one a second for each event, with the number of those left out."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._left_out: Counter[str] = Counter()

    def warn(self, event: str, **told: object) -> None:
        if time.monotonic() - self._last.get(event, -_BETWEEN_COMPLAINTS_S) < _BETWEEN_COMPLAINTS_S:
            self._left_out[event] += 1
            return
        self._last[event] = time.monotonic()
        if left_out := self._left_out.pop(event, 0):
            told["left_out"] = left_out
        _log.warning(event, **told)
