"""Delivers notices of chats, such as the end of a task, to their windows."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import structlog

from engine.disk.lasting import write_lasting
from engine.im.outbox import Outbox
from engine.im.pauses import Pauses
from engine.im.windows import ChatWindows

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Notice:
    """`key` identifies the notice within its chat; the stream continues after `position`."""

    chat_id: str
    key: str
    text: str
    position: str


class Notices(Protocol):
    async def latest(self) -> str:
        """The current position."""
        ...

    def after(self, position: str) -> AsyncIterator[Notice]:
        """The notices of all chats after that position, without end. A notice may come twice.

        After any error it is called again.
        """
        ...


class NoticeDelivery:
    """Keeps its position in `file`, so that a restart loses nothing."""

    def __init__(self, windows: ChatWindows, outbox: Outbox, notices: Notices, file: Path, *, longest_pause_s: float) -> None:
        self._windows, self._outbox, self._notices, self._file = windows, outbox, notices, file
        self._pauses = Pauses(longest_pause_s)

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            try:
                async for notice in self._notices.after(await self._begin()):
                    await self._deliver(notice)
                    self._pauses.reset()
            except Exception as error:  # noqa: BLE001 - the stream continues from its position
                _log.warning("im_notices_interrupted", reason=repr(error))
            await asyncio.sleep(self._pauses.next())

    async def _begin(self) -> str:
        """The kept position; at the very first start the current one."""
        if await asyncio.to_thread(self._file.exists):
            return await asyncio.to_thread(self._file.read_text, "utf-8")
        latest = await self._notices.latest()
        await self._keep(latest)
        return latest

    async def _deliver(self, notice: Notice) -> None:
        """Idempotent: repeated after a crash, it is one message."""
        if (told := await self._windows.say(notice.chat_id, notice.key, notice.text)) is not None:
            self._outbox.add(told)
        await self._keep(notice.position)

    async def _keep(self, position: str) -> None:
        await asyncio.to_thread(write_lasting, self._file, position.encode())
