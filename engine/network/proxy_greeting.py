"""Reads the server name in a TLS client hello (RFC 8446 §4.1.2, RFC 6066 §3)."""

import enum

_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME, _HOST_NAME = 22, 1, 0, 0
_RECORD, _MOST = 5, 64 * 1024


class Greeting(enum.Enum):
    """Why there is no name."""

    UNFINISHED = "more of it is to come"
    NAMELESS = "a greeting without a name"
    NO_TLS = "something else than TLS"
    ENDLESS = "longer than any greeting is"


def greeted(data: bytes) -> str | Greeting:
    """The name, in lower case, from the first bytes of a connection."""
    if data and data[0] != _HANDSHAKE:
        return Greeting.NO_TLS
    message, is_whole = _handshake(data)
    if message and message[0] != _CLIENT_HELLO:
        return Greeting.NO_TLS
    if not is_whole:
        return Greeting.UNFINISHED if len(data) < _MOST else Greeting.ENDLESS
    try:
        return _name(message)
    except IndexError:
        return Greeting.NO_TLS


def _handshake(data: bytes) -> tuple[bytes, bool]:
    """The first message, which may span several records, and whether it is complete."""
    message, at = b"", 0
    while len(data) >= at + _RECORD and data[at] == _HANDSHAKE:
        length = int.from_bytes(data[at + 3 : at + _RECORD], "big")
        message += data[at + _RECORD : at + _RECORD + length]
        at += _RECORD + length
        if len(message) >= 4 and len(message) >= 4 + int.from_bytes(message[1:4], "big"):
            return message[: 4 + int.from_bytes(message[1:4], "big")], True
    return message, False


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def has_more(self) -> bool:
        return self._at < len(self._data)

    def take(self, count: int) -> bytes:
        """Raises IndexError if fewer bytes are left."""
        if self._at + count > len(self._data):
            raise IndexError
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")

    def vector(self, count: int) -> bytes:
        return self.take(self.number(count))


def _name(message: bytes) -> str | Greeting:
    hello = _Reader(message[4:])
    hello.take(2 + 32)  # version, random
    hello.vector(1)  # session
    hello.vector(2)  # ciphers
    hello.vector(1)  # compression
    extensions = _Reader(hello.vector(2) if hello.has_more else b"")
    while extensions.has_more:
        kind, content = extensions.number(2), _Reader(extensions.vector(2))
        if kind == _SERVER_NAME:
            names = _Reader(content.vector(2))
            if names.number(1) == _HOST_NAME:
                return names.vector(2).decode("ascii", "replace").lower().rstrip(".")
    return Greeting.NAMELESS
