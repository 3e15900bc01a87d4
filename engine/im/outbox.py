"""What is to be sent: kept until it is acknowledged, and sent again over each new connection."""

import asyncio
from collections import deque

from toolagent.contracts.im import ImMessage


class Outbox:
    """In the order in which it was added. It is as long as the windows' entries are many: what they drop is removed."""

    def __init__(self) -> None:
        self._kept: dict[str, ImMessage] = {}
        self._unsent: deque[str] = deque()
        self._more = asyncio.Event()

    def add(self, message: ImMessage) -> None:
        """A message that is there already stays where it is."""
        if message.id not in self._kept:
            self._kept[message.id] = message
            self._unsent.append(message.id)
            self._more.set()

    def get(self, message_id: str) -> ImMessage | None:
        return self._kept.get(message_id)

    def remove(self, message_id: str) -> None:
        self._kept.pop(message_id, None)

    def rewind(self) -> None:
        """A new connection: nobody knows what arrived over the one before."""
        self._unsent = deque(self._kept)
        if self._unsent:
            self._more.set()

    async def next(self) -> ImMessage:
        """The next one that is not sent over this connection."""
        while True:
            while self._unsent:
                if (message := self._kept.get(self._unsent.popleft())) is not None:
                    return message
            self._more.clear()
            await self._more.wait()
