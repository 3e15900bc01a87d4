"""What chats say by themselves, such as that a tool is made: taken to the windows of those that have one."""

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
    """`key` names it within its chat; `position` says where the stream goes on after it."""

    chat_id: str
    key: str
    text: str
    position: str


class Notices(Protocol):
    async def latest(self) -> str:
        """The position now."""
        ...

    def after(self, position: str) -> AsyncIterator[Notice]:
        """What all chats say by themselves from then on, without end; one may come again.

        Raises whatever keeps it from going on; it is asked again then.
        """
        ...


class NoticeDelivery:
    """`file` keeps the position, so that nothing is left out over a restart."""

    def __init__(self, windows: ChatWindows, outbox: Outbox, notices: Notices, file: Path, *, longest_pause_s: float) -> None:
        self._windows, self._outbox, self._notices, self._file = windows, outbox, notices, file
        self._pauses = Pauses(longest_pause_s)

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                async for notice in self._notices.after(await self._begin()):
                    await self._deliver(notice)
                    self._pauses.reset()
            except Exception as error:  # noqa: BLE001 - whatever it is, the stream is asked again from where it was
                _log.warning("im_notices_interrupted", reason=repr(error))
            await asyncio.sleep(self._pauses.next())

    async def _begin(self) -> str:
        """What was said before the first start of all is not repeated."""
        if await asyncio.to_thread(self._file.exists):
            return await asyncio.to_thread(self._file.read_text, "utf-8")
        latest = await self._notices.latest()
        await self._keep(latest)
        return latest

    async def _deliver(self, notice: Notice) -> None:
        """Repeated after a crash it is one message."""
        if (told := await self._windows.say(notice.chat_id, notice.key, notice.text)) is not None:
            self._outbox.add(told)
        await self._keep(notice.position)

    async def _keep(self, position: str) -> None:
        await asyncio.to_thread(write_lasting, self._file, position.encode())
