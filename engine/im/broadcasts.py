"""Messages for several windows that are not in all of them yet: sent again, each goes to those that it was meant for at first."""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from engine.disk.lasting import write_lasting
from engine.im.protocol import key_of
from toolagent.contracts.im import ImMessage

_MOST = 100
"""Whoever never sends one again leaves it here."""

_FILE: TypeAdapter[dict[str, tuple[str, ...]]] = TypeAdapter(dict[str, tuple[str, ...]])


class Broadcasts:
    """`file` holds the chats of each by the key of its message. Blocks; raises OSError, and is then as before."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._begun: dict[str, tuple[str, ...]] = {}

    def load(self) -> None:
        """A file that is damaged is as none."""
        try:
            self._begun = _FILE.validate_json(self._file.read_bytes())
        except (FileNotFoundError, ValidationError):
            self._begun = {}

    def chats_of(self, message: ImMessage) -> tuple[str, ...]:
        """Nothing when it is in all its windows, or not begun."""
        return self._begun.get(key_of(message), ())

    def begin(self, message: ImMessage, chat_ids: tuple[str, ...]) -> None:
        if len(chat_ids) > 1 and not self.chats_of(message):
            self._write(dict([*self._begun.items(), (key_of(message), chat_ids)][-_MOST:]))

    def end(self, message: ImMessage) -> None:
        if self.chats_of(message):
            self._write({key: chat_ids for key, chat_ids in self._begun.items() if key != key_of(message)})

    def _write(self, begun: dict[str, tuple[str, ...]]) -> None:
        write_lasting(self._file, _FILE.dump_json(begun))
        self._begun = begun
