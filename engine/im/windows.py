"""All windows of the state directory; recently used ones are in memory."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import structlog
from pydantic import TypeAdapter, ValidationError

from engine.disk.lasting import write_lasting
from engine.im.protocol import CHAT_ID, key_of
from engine.im.window import PENDING, ChatWindow, Pending, folder_of, read_pending
from toolagent.contracts.im import ImMessage

_MOST_IN_A_WINDOW = 100
"""Messages that wait for an answer."""

_MOST_CHARACTERS = 64 << 20
"""Of all windows together."""

_REST_S = 3_600.0
"""A message may be on its way to its chat for so long, or come again."""

Known = Callable[[Sequence[str]], Awaitable[frozenset[str]]]
"""Returns those of the given chats that exist."""

T = TypeVar("T")

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_MOST_BROADCASTS = 100
"""Broadcasts that are not in all their windows yet. A sender that never repeats one leaves it here."""

_BROADCASTS: TypeAdapter[dict[str, tuple[str, ...]]] = TypeAdapter(dict[str, tuple[str, ...]])


class WindowFull(Exception):
    """Too much waits already; the text says so."""


class ChatWindows:
    """Uses `root` alone, one operation at a time. Raises OSError.

    The `most` recently used windows are open, and get broadcasts. Others are opened when a message names their chat. `dropped` gets the
    id of each answer or notice that no longer waits for an acknowledgement.
    """

    def __init__(self, root: Path, most: int = 1_000, dropped: Callable[[str], None] = lambda _: None) -> None:
        self._root, self._most, self._dropped = root, most, dropped
        self._broadcasts = Broadcasts(root / "for_all.json")
        self._open: dict[str, ChatWindow] = {}
        """The last used at the end. Copy it before iterating: a thread may change it."""
        self._unheeded: list[ImMessage] = []
        """Dropped messages that `dropped` was not told of yet."""
        self._turn = asyncio.Lock()

    @property
    def chat_ids(self) -> tuple[str, ...]:
        return tuple(self._open)

    async def load(self) -> None:
        """Opens existing windows, all with pending work among them."""
        for window in await self._exclusively(self._loaded):
            self._open[window.chat_id] = window

    async def take(self, message: ImMessage) -> tuple[str, ...]:
        """Adds a message. Returns the chats where it is new. Raises WindowFull: then it is in none."""
        return await self._exclusively(lambda: self._take(message))

    async def answer(self, chat_id: str, asked: ImMessage, told: ImMessage) -> None:
        await self._exclusively(lambda: self._open[chat_id].answer(asked, told))

    async def say(self, chat_id: str, key: str, content: str) -> ImMessage | None:
        """The notice to the last sender in that window; None if there is no such window, or if it was said before. Raises WindowFull."""
        return await self._exclusively(lambda: self._say(chat_id, key, content))

    async def has_said_otherwise(self, chat_id: str, key: str, content: str) -> bool:
        """Whether the key was used for another content in the last thousand messages of that window."""
        return await self._exclusively(lambda: bool((window := self._found(chat_id)) and window.has_said_otherwise(key, content)))

    async def settle(self, chat_id: str, told_id: str) -> None:
        await self._exclusively(lambda: window.settle(told_id) if (window := self._open.get(chat_id)) else None)

    async def last(self, chat_id: str, count: int) -> tuple[ImMessage, ...]:
        """The last messages of that window, the oldest first; empty if there is no such window."""
        return await self._exclusively(lambda: window.last(count) if (window := self._found(chat_id)) else ())

    async def forget_gone(self, known: Known, rest_s: float = _REST_S) -> None:
        """Removes windows of unknown chats, with their messages, if nothing waits in them and they rested for `rest_s` seconds."""
        folders = await asyncio.to_thread(lambda: [path.parent for path in self._root.glob(f"*/{PENDING}")])
        idle = await asyncio.to_thread(lambda: [pending.chat_id for folder in folders if (pending := _idle(folder, rest_s))])
        for chat_id in frozenset(idle) - await known(idle):
            await self._exclusively(partial(self._remove, chat_id, rest_s))

    def next_waiting(self, chat_id: str) -> ImMessage | None:
        """The first message to answer in that window."""
        window = self._open.get(chat_id)
        return next(iter(window.waiting), None) if window else None

    def waiting(self, chat_id: str) -> int:
        """The number of messages that wait for an answer in that window."""
        return len(window.waiting) if (window := self._open.get(chat_id)) else 0

    def unacknowledged(self) -> tuple[ImMessage, ...]:
        return tuple(message for window in tuple(self._open.values()) for message in window.unacknowledged)

    async def _exclusively(self, work: Callable[[], T]) -> T:
        async with self._turn:
            # A thread cannot be cancelled, so wait: the next operation must not meet it at work.
            working = asyncio.ensure_future(asyncio.to_thread(work))
            try:
                return await asyncio.shield(working)
            except asyncio.CancelledError:
                await asyncio.wait((working,))
                raise
            finally:
                while self._unheeded:
                    self._dropped(self._unheeded.pop().id)

    def _loaded(self) -> list[ChatWindow]:
        self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._broadcasts.load()
        folders = sorted(self._root.glob(f"*/{PENDING}"), key=lambda path: path.stat().st_mtime_ns)
        found = [(path.parent, pending) for path in folders if (pending := read_pending(path.parent))]
        older = len(found) - self._most
        return [
            ChatWindow(folder, pending, self._unheeded)
            for place, (folder, pending) in enumerate(found)
            if pending.entries or place >= older
        ]

    def _remove(self, chat_id: str, rest_s: float) -> None:
        folder = folder_of(self._root, chat_id)
        if _idle(folder, rest_s) is None:
            return
        self._open.pop(chat_id, None)
        # This file last: the folder is found by it, so an interrupted removal is repeated.
        for path in sorted(folder.iterdir(), key=lambda path: path.name == PENDING):
            path.unlink()
        folder.rmdir()

    def _take(self, message: ImMessage) -> tuple[str, ...]:
        windows = self._windows_for(message)
        new = [window for window in windows if message not in window]
        free = [window for window in new if len(window.waiting) < _MOST_IN_A_WINDOW]
        if not free and len(new) == len(windows):
            where = f"the chat {new[0].chat_id!r}" if len(new) == 1 else "each chat"
            raise WindowFull(f"In {where} {_MOST_IN_A_WINDOW} messages wait. Send it again later.")
        self._make_room(len(message.content) * len(free))
        self._broadcasts.begin(message, tuple(window.chat_id for window in free))
        taken = tuple(window.chat_id for window in free if window.take(message))
        self._broadcasts.end(message)
        return taken

    def _say(self, chat_id: str, key: str, content: str) -> ImMessage | None:
        if (window := self._found(chat_id)) is None or (told := window.unsaid(key, content)) is None:
            return None
        self._make_room(len(content))
        window.say(told)
        return told

    def _windows_for(self, message: ImMessage) -> list[ChatWindow]:
        if message.receiver_chat_id is not None:
            return [self._opened(message.receiver_chat_id)]
        if begun := self._broadcasts.chats_of(message):
            return [self._opened(chat_id) for chat_id in begun]
        if not self._open:  # the first window of all
            return [self._opened(next(name for name in (message.sender_chat_id, message.sender, "im") if name and CHAT_ID.fullmatch(name)))]
        windows = [*self._open.values()]
        # Windows that were opened after it first came do not get it.
        return [window for window in windows if message in window] or windows

    def _make_room(self, characters: int) -> None:
        """Drops unacknowledged answers, first those of the window that has most of them."""
        windows = self._open.values()
        if sum(window.size - window.told_size for window in windows) + characters > _MOST_CHARACTERS:
            raise WindowFull("Too much waits to be answered here. Send it again later.")
        while (excess := sum(window.size for window in windows) + characters - _MOST_CHARACTERS) > 0:
            max(windows, key=lambda window: window.told_size).drop(excess)

    def _found(self, chat_id: str) -> ChatWindow | None:
        is_there = chat_id in self._open or (folder_of(self._root, chat_id) / PENDING).exists()
        return self._opened(chat_id) if is_there else None

    def _opened(self, chat_id: str) -> ChatWindow:
        window = self._open.pop(chat_id, None) or ChatWindow.opened(self._root, chat_id, self._unheeded)
        self._open[chat_id] = window
        idle = (name for name, one in self._open.items() if not one.entries and name != chat_id)
        if len(self._open) > self._most and (oldest := next(idle, None)) is not None:
            del self._open[oldest]
        return window


def _idle(folder: Path, rest_s: float) -> Pending | None:
    """The `pending.json` of the folder, if it has been empty for `rest_s` seconds."""
    try:
        changed_at = (folder / PENDING).stat().st_mtime
    except FileNotFoundError:
        return None
    pending = read_pending(folder) if changed_at < time.time() - rest_s else None
    return pending if pending and not pending.entries else None


class Broadcasts:
    """Broadcasts that are not in all their windows yet. When one is sent again, it goes to the same windows.

    `file` has the chats of each, by message key. Blocks; raises OSError, and is then unchanged.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._begun: dict[str, tuple[str, ...]] = {}

    def load(self) -> None:
        """A damaged file counts as empty."""
        try:
            self._begun = _BROADCASTS.validate_json(self._file.read_bytes())
        except (FileNotFoundError, ValidationError):
            self._begun = {}

    def chats_of(self, message: ImMessage) -> tuple[str, ...]:
        """Empty if the message is in all its windows, or is no broadcast."""
        return self._begun.get(key_of(message), ())

    def begin(self, message: ImMessage, chat_ids: tuple[str, ...]) -> None:
        if len(chat_ids) > 1 and not self.chats_of(message):
            self._write(dict([*self._begun.items(), (key_of(message), chat_ids)][-_MOST_BROADCASTS:]))

    def end(self, message: ImMessage) -> None:
        if self.chats_of(message):
            self._write({key: chat_ids for key, chat_ids in self._begun.items() if key != key_of(message)})

    def _write(self, begun: dict[str, tuple[str, ...]]) -> None:
        write_lasting(self._file, _BROADCASTS.dump_json(begun))
        self._begun = begun
