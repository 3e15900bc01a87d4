"""The window of one chat: a folder with what is still to be done, and with what was said.

`pending.json` is written first and in one piece, then `chatbox.jsonl`: what a crash keeps from the second is written there from the first.
"""

import hashlib
from pathlib import Path
from typing import Self

import structlog
from pydantic import ValidationError

from engine.disk.lasting import sync_folder, write_lasting
from engine.im.chatbox import ChatBox
from engine.im.protocol import notice_to
from toolagent.contracts.contract import Contract
from toolagent.contracts.im import ImMessage

PENDING, CHATBOX = "pending.json", "chatbox.jsonl"

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Entry(Contract):
    """`asked` waits for its answer while there is no `told`, which waits for its acknowledgement."""

    asked: ImMessage | None = None
    told: ImMessage | None = None


class Pending(Contract):
    """`pending.json`."""

    chat_id: str
    entries: tuple[Entry, ...] = ()


class ChatWindow:
    """Blocks; raises OSError, and is then as before. One at a time may use it."""

    def __init__(self, folder: Path, pending: Pending) -> None:
        self.chat_id, self.entries = pending.chat_id, pending.entries
        self._folder = folder
        self._box: ChatBox | None = None
        if self.entries:
            self._mend()

    @classmethod
    def opened(cls, root: Path, chat_id: str) -> Self:
        """The folder is made if need be."""
        folder = folder_of(root, chat_id)
        pending = read_pending(folder) or Pending(chat_id=chat_id)
        if not (folder / PENDING).exists():
            folder.mkdir(exist_ok=True, mode=0o700)
            sync_folder(root)
            write_lasting(folder / PENDING, pending.model_dump_json().encode())
        return cls(folder, pending)

    @property
    def waiting(self) -> tuple[ImMessage, ...]:
        """Those to be answered, in the order in which they came."""
        return tuple(entry.asked for entry in self.entries if entry.asked and not entry.told)

    @property
    def unacknowledged(self) -> tuple[ImMessage, ...]:
        return tuple(entry.told for entry in self.entries if entry.told)

    @property
    def size(self) -> int:
        """Characters that wait."""
        return sum(len(message.content) for entry in self.entries for message in (entry.asked, entry.told) if message)

    def take(self, message: ImMessage) -> bool:
        """Whether it is new."""
        if message in self._opened_box:
            return False
        self._change((*self.entries, Entry(asked=message)), message)
        return True

    def answer(self, asked: ImMessage, told: ImMessage) -> None:
        entries = (Entry(asked=asked, told=told) if entry.asked == asked else entry for entry in self.entries)
        self._change(tuple(entries), told)

    def say(self, key: str, content: str) -> ImMessage | None:
        """What is said to whoever asked last; None where nobody has, or where it was said under this key before."""
        partner = self._opened_box.partner
        told = notice_to(partner, self.chat_id, key, content) if partner else None
        if told is None or told in self._opened_box:
            return None
        self._change((*self.entries, Entry(told=told)), told)
        return told

    def settle(self, told_id: str) -> None:
        """It was acknowledged, or refused for good."""
        self._change(tuple(entry for entry in self.entries if entry.told is None or entry.told.id != told_id))

    def last(self, count: int) -> tuple[ImMessage, ...]:
        """What was said last, the oldest of it first."""
        return self._opened_box.last(count)

    @property
    def _opened_box(self) -> ChatBox:
        if self._box is None:
            self._box = ChatBox(self._folder / CHATBOX, self.chat_id)
        return self._box

    def _change(self, entries: tuple[Entry, ...], said: ImMessage | None = None) -> None:
        pending = Pending(chat_id=self.chat_id, entries=entries)
        write_lasting(self._folder / PENDING, pending.model_dump_json(exclude_none=True).encode())
        if said is not None:
            self._opened_box.append(said)
        self.entries = entries

    def _mend(self) -> None:
        for entry in self.entries:
            for message in (entry.asked, entry.told):
                if message is not None and message not in self._opened_box:
                    self._opened_box.append(message)


def folder_of(root: Path, chat_id: str) -> Path:
    """Hashed: a chat id may hold what a file name may not."""
    return root / hashlib.sha256(chat_id.encode()).hexdigest()[:32]


def read_pending(folder: Path) -> Pending | None:
    """None where there is none. One that cannot be read is set aside, so that the window can be used on."""
    path = folder / PENDING
    try:
        return Pending.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError:
        aside = path.with_suffix(".damaged")
        path.replace(aside)
        _log.error("im_pending_damaged", folder=folder.name, kept_as=aside.name)
        return None
