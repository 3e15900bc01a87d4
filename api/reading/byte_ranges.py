"""Which bytes of a file a request asks for (RFC 9110 §14)."""

import re
from dataclasses import dataclass

_ONE = re.compile(r"bytes=\s*(\d{0,20})\s*-\s*(\d{0,20})\s*", re.IGNORECASE)


class UnsatisfiableRangeError(ValueError):
    """No byte of the file is in the range."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """`length` bytes from `start`."""

    start: int
    length: int

    def content_range(self, size: int) -> str:
        return f"bytes {self.start}-{self.start + self.length - 1}/{size}"


def range_of(header: str | None, size: int) -> ByteRange | None:
    """The range of a Range header; None for the whole file, also when the header cannot be read or names several.

    Raises UnsatisfiableRangeError.
    """
    found = _ONE.fullmatch(header.strip()) if header else None
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        length = min(int(last), size)
        return _require(ByteRange(size - length, length), size)
    if last and int(last) < int(first):
        return None
    end = min(int(last) + 1 if last else size, size)
    return _require(ByteRange(int(first), end - int(first)), size)


def is_current(header: str | None, etag: str) -> bool:
    """Whether a list of entity tags (If-None-Match) has this one, or is `*`."""
    if header is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return "*" in tags or etag in tags


def _require(wanted: ByteRange, size: int) -> ByteRange:
    if wanted.start >= size or wanted.length <= 0:
        raise UnsatisfiableRangeError
    return wanted
