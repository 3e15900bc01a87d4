"""Telling which windows have something to answer."""

import asyncio


class Notifier:
    """A window that was named twice before somebody looked is named once."""

    def __init__(self) -> None:
        self._windows: dict[str, None] = {}
        self._more = asyncio.Event()

    def notify(self, chat_id: str) -> None:
        self._windows[chat_id] = None
        self._more.set()

    async def next(self) -> str:
        """The chat id of the window that waits longest."""
        await self._more.wait()
        chat_id = next(iter(self._windows))
        del self._windows[chat_id]
        if not self._windows:
            self._more.clear()
        return chat_id
