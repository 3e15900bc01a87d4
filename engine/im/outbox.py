"""Messages to send: kept until they are acknowledged, and sent again over each new connection."""

import asyncio
from collections import deque

from toolagent.contracts.im import ImMessage


class Outbox:
    """Ordered by addition. The windows bound its length: they remove what they drop."""

    def __init__(self) -> None:
        self._kept: dict[str, ImMessage] = {}
        self._unsent: deque[str] = deque()
        self._more = asyncio.Event()

    def add(self, message: ImMessage) -> None:
        """A message that is in the outbox already keeps its place."""
        if message.id not in self._kept:
            self._kept[message.id] = message
            self._unsent.append(message.id)
            self._more.set()

    def get(self, message_id: str) -> ImMessage | None:
        return self._kept.get(message_id)

    def remove(self, message_id: str) -> None:
        self._kept.pop(message_id, None)

    def rewind(self) -> None:
        """Sends everything again over a new connection: it is unknown what arrived over the last one."""
        self._unsent = deque(self._kept)
        if self._unsent:
            self._more.set()

    async def next(self) -> ImMessage:
        """Waits for the next message that was not sent over this connection."""
        while True:
            while self._unsent:
                if (message := self._kept.get(self._unsent.popleft())) is not None:
                    return message
            self._more.clear()
            await self._more.wait()
