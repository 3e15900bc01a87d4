"""The messages of a window: an append-only file, one message a line."""

import os
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

import structlog

from engine.disk.lasting import append_lasting
from engine.im.protocol import NotAMessage, key_of, read_message, wants_answer
from toolagent.contracts.im import ImMessage

_TAIL = 8 << 20
"""Bytes at the end of the file that are read; earlier ones are for people."""

_KNOWN = 1_000
"""Messages whose ids are remembered."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ChatBox:
    """The file of the window `chat_id`. A torn last line is cut off: its writer has the message elsewhere. Blocks; raises OSError."""

    def __init__(self, path: Path, chat_id: str) -> None:
        self._path, self._chat_id = path, chat_id
        self._known: OrderedDict[str, int] = OrderedDict()
        """Hashes of contents, by message key."""
        self.partner: ImMessage | None = None
        """The last question to this window, else the last one to all windows. Its sender receives the notices of the chat."""
        _mend(path)
        for message in self._tail():
            self._note(message)

    def __contains__(self, message: ImMessage) -> bool:
        """Whether the message is one of the last thousand."""
        return key_of(message) in self._known

    def has_otherwise(self, message: ImMessage) -> bool:
        """Whether one of the last thousand has the same id and another content."""
        said = hash(message.content)
        return self._known.get(key_of(message), said) != said

    def append(self, message: ImMessage) -> None:
        append_lasting(self._path, message.model_dump_json(exclude_none=True).encode() + b"\n")
        self._note(message)

    def last(self, count: int) -> tuple[ImMessage, ...]:
        """The last messages, the oldest first."""
        return (*self._tail(),)[-count:]

    def _note(self, message: ImMessage) -> None:
        self._known[key_of(message)] = hash(message.content)
        if len(self._known) > _KNOWN:
            self._known.popitem(last=False)
        if wants_answer(message) and (self.partner is None or self._is_here(message) or not self._is_here(self.partner)):
            self.partner = message

    def _is_here(self, message: ImMessage) -> bool:
        """Whether the message names this window."""
        return message.receiver_chat_id == self._chat_id

    def _tail(self) -> Iterator[ImMessage]:
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            if size > _TAIL:
                file.readline()  # the rest of a line
            lines = file.read().splitlines()
        wrong = 0
        for line in lines:
            try:
                yield read_message(line)
            except NotAMessage:
                wrong += 1
        if wrong:
            _log.warning("im_chatbox_lines_skipped", chat_id=self._chat_id, count=wrong)


def _mend(path: Path) -> None:
    if not path.exists():
        return
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL))
        tail = file.read()
        whole = tail.rfind(b"\n") + 1
        if whole != len(tail):
            _log.warning("im_chatbox_mended", file=path.name, folder=path.parent.name, bytes=len(tail) - whole)
            file.truncate(size - len(tail) + whole)
            os.fsync(file.fileno())
