"""The window of one chat: a folder with its pending work and its messages.

`pending.json` is replaced first, atomically, then `chatbox.jsonl` is appended: after a crash the first restores the second.
"""

import hashlib
from collections.abc import Callable
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

_MOST_TOLD = 100
"""Answers and notices that wait for an acknowledgement. Older ones remain in `chatbox.jsonl`."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Entry(Contract):
    """`asked` waits for an answer until there is `told`, which waits for an acknowledgement."""

    asked: ImMessage | None = None
    told: ImMessage | None = None

    @property
    def size(self) -> int:
        """In characters."""
        return sum(len(message.content) for message in (self.asked, self.told) if message)


class Pending(Contract):
    """`pending.json`."""

    chat_id: str
    entries: tuple[Entry, ...] = ()


class ChatWindow:
    """Blocks; raises OSError, and is then unchanged. Not thread-safe.

    An answer or notice that no longer waits for an acknowledgement is added to `dropped`.
    """

    def __init__(self, folder: Path, pending: Pending, dropped: list[ImMessage] | None = None) -> None:
        self.chat_id, self.entries = pending.chat_id, pending.entries
        self._folder, self._dropped = folder, [] if dropped is None else dropped
        self._box: ChatBox | None = None
        if self.entries:
            self._mend()

    @classmethod
    def opened(cls, root: Path, chat_id: str, dropped: list[ImMessage] | None = None) -> Self:
        """Opens the window, and creates its folder if it is missing."""
        folder = folder_of(root, chat_id)
        pending = read_pending(folder) or Pending(chat_id=chat_id)
        if not (folder / PENDING).exists():
            folder.mkdir(exist_ok=True, mode=0o700)
            sync_folder(root)
            write_lasting(folder / PENDING, pending.model_dump_json().encode())
        return cls(folder, pending, dropped)

    @property
    def waiting(self) -> tuple[ImMessage, ...]:
        """Messages that wait for an answer, in order of arrival."""
        return tuple(entry.asked for entry in self.entries if entry.asked and not entry.told)

    @property
    def unacknowledged(self) -> tuple[ImMessage, ...]:
        return tuple(entry.told for entry in self.entries if entry.told)

    @property
    def size(self) -> int:
        """Characters of all entries."""
        return sum(entry.size for entry in self.entries)

    @property
    def told_size(self) -> int:
        """Characters of entries that only wait for an acknowledgement."""
        return sum(entry.size for entry in self.entries if entry.told)

    def __contains__(self, message: ImMessage) -> bool:
        """Whether the message is one of the last thousand here."""
        return message in self._opened_box

    def take(self, message: ImMessage) -> bool:
        """Adds the message. False: it is not new."""
        if message in self:
            return False
        self._change((*self.entries, Entry(asked=message)), message)
        return True

    def answer(self, asked: ImMessage, told: ImMessage) -> None:
        others = (entry for entry in self.entries if entry.asked != asked)
        self._change((*others, Entry(asked=asked, told=told)), told)

    def unsaid(self, key: str, content: str) -> ImMessage | None:
        """The notice to the last sender; None if there is none, or if the key was used before."""
        told = self._notice(key, content)
        return None if told is None or told in self._opened_box else told

    def say(self, told: ImMessage) -> None:
        self._change((*self.entries, Entry(told=told)), told)

    def has_said_otherwise(self, key: str, content: str) -> bool:
        """Whether the key was used for another content."""
        told = self._notice(key, content)
        return told is not None and self._opened_box.has_otherwise(told)

    def settle(self, told_id: str) -> None:
        """Removes an answer that was acknowledged, or finally refused."""
        self._change(tuple(entry for entry in self.entries if entry.told is None or entry.told.id != told_id))

    def drop(self, characters: int) -> None:
        """Drops the oldest answers and notices that wait for an acknowledgement, until so many characters are free."""
        self._change(_without_oldest(self.entries, characters, lambda entry: entry.size))

    def last(self, count: int) -> tuple[ImMessage, ...]:
        """The last messages, the oldest first."""
        return self._opened_box.last(count)

    def _notice(self, key: str, content: str) -> ImMessage | None:
        partner = self._opened_box.partner
        return notice_to(partner, self.chat_id, key, content) if partner else None

    @property
    def _opened_box(self) -> ChatBox:
        if self._box is None:
            self._box = ChatBox(self._folder / CHATBOX, self.chat_id)
        return self._box

    def _change(self, entries: tuple[Entry, ...], said: ImMessage | None = None) -> None:
        too_many = sum(entry.told is not None for entry in entries) - _MOST_TOLD
        entries = _without_oldest(entries, too_many, lambda _: 1)
        pending = Pending(chat_id=self.chat_id, entries=entries)
        write_lasting(self._folder / PENDING, pending.model_dump_json(exclude_none=True).encode())
        if said is not None:
            self._opened_box.append(said)
        kept = {entry.told.id for entry in entries if entry.told}
        self._dropped += [message for message in self.unacknowledged if message.id not in kept]
        self.entries = entries

    def _mend(self) -> None:
        for entry in self.entries:
            for message in (entry.asked, entry.told):
                if message is not None and message not in self._opened_box:
                    self._opened_box.append(message)


def _without_oldest(entries: tuple[Entry, ...], surplus: int, size: Callable[[Entry], int]) -> tuple[Entry, ...]:
    """The entries without the oldest that are told, until the `surplus` is gone."""
    kept: list[Entry] = []
    for entry in entries:
        if entry.told and surplus > 0:
            surplus -= size(entry)
        else:
            kept.append(entry)
    return tuple(kept)


def folder_of(root: Path, chat_id: str) -> Path:
    """A hash as name, because a chat id may contain characters that a file name may not."""
    return root / hashlib.sha256(chat_id.encode()).hexdigest()[:32]


def read_pending(folder: Path) -> Pending | None:
    """None if there is none. A damaged one is set aside, so that the window stays usable."""
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
