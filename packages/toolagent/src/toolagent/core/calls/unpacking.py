"""Unpacks compressed bodies in pieces of limited size: two kilobytes can hold gigabytes."""

import zlib
from collections.abc import Iterator, MutableMapping

__all__ = ["PACKINGS", "BodyRefused", "BoundedBody", "bounded_body"]

PACKINGS = "gzip, deflate"
"""The supported encodings, as a value of `Accept-Encoding`."""

_PIECE_BYTES = 64 * 1024
_REDIRECT_BYTES = 64 * 1024
_GZIP_OR_ZLIB = 47
_ZLIB, _RAW = 15, -15
_ZLIB_HEAD = 2
_KNOWN = frozenset(("gzip", "x-gzip", "deflate"))


class BodyRefused(ValueError):
    """The body is not read to its end; the message says why."""


class BoundedBody:
    """Reads one body, chunk by chunk. `packings` are those of its Content-Encoding: none, or one known.

    At `max_bytes`, packed or unpacked, the body is refused, or ends if it `is_cut`.
    """

    def __init__(self, packings: tuple[str, ...] = (), max_bytes: int | None = None, *, is_cut: bool = False) -> None:
        self._packings, self._max_bytes, self._is_cut = packings, max_bytes, is_cut
        self._unpacker: _Unpacker | None = None
        self._packed = self._given = 0

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return self._is_cut and self._max_bytes is not None and max(self._packed, self._given) >= self._max_bytes

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """The unpacked pieces of a chunk. Raises BodyRefused."""
        self._packed += len(chunk)
        self._check(self._packed)
        for piece in self._unpacked(chunk):
            room = None if self._max_bytes is None else self._max_bytes - self._given
            self._given += len(piece)
            self._check(self._given)
            yield piece[:room]
            if self.is_full:
                return

    def end(self) -> None:
        """Call it at the end. Raises BodyRefused when the compressed data is incomplete."""
        if self._unpacker is not None and not self.is_full:
            self._unpacker.end()

    def _unpacked(self, chunk: bytes) -> Iterator[bytes]:
        if not self._packings:
            return iter((chunk,))
        if self._unpacker is None:
            self._unpacker = _unpacker(self._packings)
        return self._unpacker.pieces(chunk)

    def _check(self, count: int) -> None:
        if self._max_bytes is not None and count > self._max_bytes and not self._is_cut:
            raise BodyRefused(f"it has more than {self._max_bytes} bytes")


def bounded_body(
    headers: MutableMapping[str, str], max_bytes: int | None, *, is_redirect: bool, keeps_unknown: bool = False
) -> BoundedBody | None:
    """The reader for an answer with these headers; None if the body needs none.

    Removes Content-Encoding, and the packed length, from the headers. `keeps_unknown`: unknown encodings stay packed.
    """
    packings = _packings(headers.pop("content-encoding", ""))
    if packings:
        headers.pop("content-length", None)
    if is_redirect:
        # Only people read the body of a redirect.
        return BoundedBody((), 0 if packings else _REDIRECT_BYTES, is_cut=True)
    if keeps_unknown and not _is_known(packings):
        packings = ()
    return BoundedBody(packings, max_bytes) if packings or max_bytes is not None else None


def _packings(content_encoding: str) -> tuple[str, ...]:
    return tuple(one for part in content_encoding.split(",") if (one := part.strip().lower()) not in {"", "identity"})


def _is_known(packings: tuple[str, ...]) -> bool:
    return len(packings) == 1 and packings[0] in _KNOWN


def _unpacker(packings: tuple[str, ...]) -> "_Unpacker":
    if not _is_known(packings):
        said = ", ".join(packings)[:100]
        raise BodyRefused(f"its Content-Encoding is {said!r}: it is to be sent as it is, or packed once, by gzip or deflate")
    return _Unpacker(packings[0])


class _Unpacker:
    def __init__(self, packing: str) -> None:
        self._zlib = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._head: bytes | None = b"" if packing == "deflate" else None

    def pieces(self, packed: bytes) -> Iterator[bytes]:
        left = self._begun(packed)
        while left:
            if self._zlib.eof:
                raise BodyRefused("more follows where what is packed has ended")
            try:
                piece = self._zlib.decompress(left, _PIECE_BYTES)
            except zlib.error as error:
                raise BodyRefused(f"it cannot be unpacked: {error}") from error
            left = self._zlib.unconsumed_tail or self._zlib.unused_data
            if piece:
                yield piece

    def end(self) -> None:
        if not self._zlib.eof:
            raise BodyRefused("it cannot be unpacked: its end is missing")

    def _begun(self, packed: bytes) -> bytes:
        """Some servers send `deflate` with the head of zlib, as defined, and some without."""
        if self._head is None:
            return packed
        self._head += packed
        if len(self._head) < _ZLIB_HEAD:
            return b""
        left, self._head = self._head, None
        has_head = left[0] & 0x0F == zlib.DEFLATED and int.from_bytes(left[:_ZLIB_HEAD], "big") % 31 == 0
        self._zlib = zlib.decompressobj(_ZLIB if has_head else _RAW)
        return left
