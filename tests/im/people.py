"""The participants: an agent at the IM server, and fake chats, kept in the test's memory."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from websockets.asyncio.client import ClientConnection, connect

from engine.im.answering import Unanswerable
from engine.im.client import Bounds, ImClient
from engine.im.connection import Line
from engine.im.notices import Notice, Notices
from toolagent.contracts.im import ImMessage, ImType
from toolagent.testing.servers.im_server import ImServer

__all__ = ["BOUND_S", "Chats", "Person", "Sayings", "person", "running_client"]

BOUND_S = 60


class Chats:
    """Implements `Answering`: the answer is the text after its chat, the same for the same id. `hold` delays answers until it is set."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], str] = {}
        self.asked: Counter[tuple[str, str]] = Counter()
        self.order: list[tuple[str, str]] = []
        self.failures: list[Exception] = []
        self.hold = asyncio.Event()
        self.hold.set()
        self.changed = asyncio.Condition()
        self.at_once = self.most_at_once = 0

    async def answer(self, chat_id: str, message_id: str, text: str) -> str:
        self.asked[chat_id, message_id] += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self._tell()
            if self.failures:
                raise self.failures.pop(0)
            if text == "unanswerable":
                raise Unanswerable("I cannot answer this.")
            await self.hold.wait()
            self.order.append((chat_id, text))
            return self.answers.setdefault((chat_id, message_id), f"{chat_id}: {text}")
        finally:
            self.at_once -= 1
            await self._tell()

    async def until(self, come_true: Callable[[], bool]) -> None:
        async with asyncio.timeout(BOUND_S), self.changed:
            await self.changed.wait_for(come_true)

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()


class Sayings:
    """Implements `Notices`: numbered messages of chats. `failures` interrupt the stream."""

    def __init__(self, *notices: Notice) -> None:
        self.notices = [*notices]
        self.failures: list[Exception] = []
        self._more = asyncio.Event()

    def say(self, chat_id: str, text: str) -> None:
        self.notices.append(Notice(chat_id, f"task-{len(self.notices)}", text, str(len(self.notices) + 1)))
        self._more.set()

    async def latest(self) -> str:
        return str(len(self.notices))

    async def after(self, position: str) -> AsyncIterator[Notice]:
        place = int(position)
        while True:
            while place < len(self.notices):
                if self.failures:
                    raise self.failures.pop(0)
                place += 1
                yield self.notices[place - 1]
            self._more.clear()
            await self._more.wait()


class Person:
    """A contact at the server, over one WebSocket. Acknowledges messages, and ignores repeated ones."""

    def __init__(self, name: str, socket: ClientConnection) -> None:
        self.name, self._socket = name, socket
        self._seen: set[str] = set()

    async def send_message(self, message: ImMessage) -> None:
        await self._socket.send(message.model_dump_json(exclude_none=True))

    async def send(self, content: str, chat: str | None = None, *, message_id: str, own_chat: str | None = "mine") -> None:
        await self.send_message(
            ImMessage(
                id=message_id, sender=self.name, receiver="tool_agent", content=content, sender_chat_id=own_chat, receiver_chat_id=chat
            )
        )

    async def next(self, *kinds: ImType) -> ImMessage:
        """The next message of one of these types; without types, the next that is no acknowledgement."""
        async with asyncio.timeout(BOUND_S):
            while True:
                message = ImMessage.model_validate_json(await self._socket.recv())
                if message.type not in {ImType.ACK, ImType.ERROR}:
                    await self.send_message(ImMessage(id=message.id, sender=self.name, receiver=message.sender, type=ImType.ACK))
                    if message.id in self._seen:
                        continue
                    self._seen.add(message.id)
                if message.type in (kinds or {kind for kind in ImType if kind is not ImType.ACK}):
                    return message

    async def replies(self, count: int) -> list[str]:
        return [(await self.next(ImType.REPLY)).content for _ in range(count)]


@asynccontextmanager
async def person(server: ImServer, name: str = "alice", token: str = "") -> AsyncGenerator[Person]:
    headers, address = {"Authorization": f"Bearer {token}"}, f"{server.im_url}/?contact_id={name}"
    # With a bound, the server's farewell lies behind what nobody reads, and closing waits ten seconds for it.
    async with connect(address, additional_headers=headers, proxy=None, max_size=None, max_queue=None) as socket:
        yield Person(name, socket)


@asynccontextmanager
async def running_client(
    server: ImServer | str,
    folder: Path,
    chats: Chats,
    notices: Notices | None = None,
    *,
    bounds: Bounds | None = None,
    heartbeat_s: float = 20.0,
    max_frame_bytes: int = 262_144,
    token: str | None = None,
) -> AsyncGenerator[ImClient]:
    """A client that runs until the block ends, with short pauses."""
    line = Line(
        server if isinstance(server, str) else server.im_url,
        token=token,
        heartbeat_s=heartbeat_s,
        max_frame_bytes=max_frame_bytes,
        longest_pause_s=0.05,
    )
    client = ImClient(line, folder, chats, notices, bounds)
    running = asyncio.create_task(client.run())
    try:
        yield client
        assert not running.done(), running.exception()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
